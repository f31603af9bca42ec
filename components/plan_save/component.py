"""Component that plans a save which nobody makes."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def plan_save(
    pipeline_run: str,
    source: str,
    answer: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    mesh: str = "",
    devices_per_host: int = 0,
    onto: str = "",
    onto_devices_per_host: int = 0,
    options: str = "",
    run: str = "",
) -> List[str]:  # noqa: UP006
    """Plans a save and the load of it, without a run and without an accelerator.

    It succeeds whatever will fail; hand what it returns to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        source: A preset such as llama-8b@0.1+adamw, a suite file, a file with a spec, a Flax NNX
            factory or a checkpoint.
        answer: Files, bytes, memory and times, as JSON.
        summary: The same as Markdown.
        report: The same as a page that needs no other file.
        mesh: The mesh that is saved from, as data=4,fsdp=64; empty for that of the source.
        devices_per_host: Devices of one process there; needed above 8 devices.
        onto: The mesh that is loaded onto; empty for the same.
        onto_devices_per_host: Devices of one process of that.
        options: Options of the save as YAML, such as {use_ocdbt: false}; empty for those of the
            source.
        run: A run directory whose limits say what the storage can do; empty for no times.

    Returns:
        What will fail, a line each.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, plan_save

    with ErrorsAsMessages():
        return plan_save(
            source,
            mesh=mesh,
            devices_per_host=devices_per_host,
            onto=onto,
            onto_devices_per_host=onto_devices_per_host,
            options=options,
            run=run,
            answer=answer.path,
            summary=summary.path,
            report=report.path,
        ).into(answer=answer, summary=summary, report=report)
