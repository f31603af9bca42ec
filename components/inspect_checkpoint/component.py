"""Component that looks at a checkpoint without loading it."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def inspect_checkpoint(
    pipeline_run: str,
    checkpoint: str,
    answer: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    mesh: str = "",
    devices_per_host: int = 0,
    restore_concurrent_gb: float = 0.0,
    generated: dsl.Input[dsl.Artifact] = None,
) -> List[str]:  # noqa: UP006
    """Looks at a checkpoint without loading an array: commit state, damage, chunks and loads.

    It succeeds whatever is wrong, because an engine keeps the artifacts of no other step; hand what
    it returns to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        checkpoint: Its root, or the directory of one item.
        answer: Every number, as JSON.
        summary: What was found, as Markdown.
        report: The same as a page that needs no other file.
        mesh: The mesh that it would be loaded onto, as fsdp=8; empty for that of the save.
        devices_per_host: Devices of one process there; 0 for as they were.
        restore_concurrent_gb: Most GiB in flight while loading; 0 for any.
        generated: What generate-checkpoint made; it orders this step after that one.

    Returns:
        What is wrong with it, a line each; nothing of what metadata and file sizes do not tell.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, inspect_checkpoint

    with ErrorsAsMessages():
        return inspect_checkpoint(
            checkpoint,
            mesh=mesh,
            devices_per_host=devices_per_host,
            restore_concurrent_gb=restore_concurrent_gb,
            answer=answer.path,
            summary=summary.path,
            report=report.path,
        ).into(answer=answer, summary=summary, report=report)
