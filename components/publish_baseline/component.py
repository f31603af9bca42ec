"""Component that stores a run as a baseline."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def publish_baseline(
    pipeline_run: str,
    output_directory: str,
    registry: str,
    baseline: dsl.Output[dsl.Dataset],
    arm: str = "candidate",
    promote: bool = False,
    revision: str = "",
    force: bool = False,
    verdict: str = "",
    allow_inconclusive: bool = False,
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Captures a run in a registry of baselines, with every raw sample, unless its verdict is bad.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory.
        registry: The registry: a folder or a gs:// prefix.
        baseline: What was captured; it points at the registry and copies nothing.
        arm: Which side of a paired run: `baseline` or `candidate`.
        promote: Whether the capture becomes the baseline of its points.
        revision: Name to file it under; by default the commit of the code under test: of your class
            or, for a built-in, of the suite file.
        force: Whether it is promoted even if its code had uncommitted changes.
        verdict: What compare-baseline returned: REGRESSION and INCONCLUSIVE are not captured. Empty
            captures any result.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.engine import as_component

    as_component("publish_baseline", locals())
