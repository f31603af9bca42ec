"""Component that plans a save without a run."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


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
    """Plan a save and the load of it, without a run; returns what will fail, as a list.

    It needs no accelerator.

    The step succeeds whatever it finds, because an engine keeps artifacts only of steps that
    succeed; pass its result to enforce-verdict, which then fails.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        source: A suite file, a file with a spec, a preset such as llama-8b@0.1+adamw, a Flax NNX
            factory or a checkpoint.
        answer: All numbers, as JSON.
        summary: What people read, as Markdown.
        report: The same with figures, as a page that needs no other file.
        mesh: The mesh that is saved from; empty for that of the source.
        devices_per_host: Devices of one process there; 0 for all, up to 8.
        onto: The mesh that is loaded onto; empty for the same.
        onto_devices_per_host: Devices of one process of that.
        options: Options of the save by name, such as '{use_ocdbt: false}'; empty for those of the
            source.
        run: A run whose limits give the storage's speed; empty for no times.

    Returns:
        What will fail, a line each.
    """
    from orbax_bench_core.engine import as_component

    return as_component("plan_save", locals())
