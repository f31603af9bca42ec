"""Component that looks at a checkpoint without loading it."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


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
    """Look at a checkpoint without loading it; returns what is wrong with it, as a list.

    It finds an unfinished save and missing files, from metadata and file sizes alone.

    The step succeeds whatever it finds, because an engine keeps artifacts only of steps that
    succeed; pass its result to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        checkpoint: Its root, or the directory of one item; local or gs://.
        answer: All numbers, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        mesh: The mesh that it is loaded onto; empty for that of the save.
        devices_per_host: Devices of one process there; 0 for those of the save.
        restore_concurrent_gb: Most GiB in flight while loading; 0 for any.
        generated: What generate-checkpoint made; it orders this step after that one.

    Returns:
        What is wrong with it, a line each.
    """
    from orbax_bench_core.engine import as_component

    return as_component("inspect_checkpoint", locals())
