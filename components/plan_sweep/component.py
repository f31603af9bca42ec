"""Component that expands a suite into its sweep points."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def plan_sweep(
    pipeline_run: str,
    suite: str,
    output_directory: str,
    planned: dsl.Output[dsl.Artifact],
    arms: str = "",
    processes: int = 0,
    points_per_step: int = 0,
    go_on: bool = False,
) -> List[str]:  # noqa: UP006
    """Expands a suite into sweep points and begins its run directory.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        suite: The suite file, word for word.
        output_directory: The run directory, local or gs://, reachable from every step.
        planned: The suite, from which aggregate's tables and every later verdict descend.
        arms: An `arms` block, as YAML, for a suite that has none; `{}` compares it with itself.
        processes: Host processes of each point, such as the hosts of a TPU slice, if the suite does
            not set them; 0 means one.
        points_per_step: Points that one step measures; 0 for as many as take minutes.
        go_on: Whether to continue a run that an earlier run of the pipeline began in the directory;
            otherwise it is refused.

    Returns:
        An item for each measuring step: the ids of its points, separated by spaces.
    """
    from orbax_bench_core.engine import as_component

    return as_component("plan_sweep", locals(), engine_run=pipeline_run)
