"""Component that makes the checkpoint that load-only sweep points read."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def generate_checkpoint(
    pipeline_run: str, suite: str, checkpoint: dsl.Output[dsl.Artifact], fixture: str = ""
) -> None:
    """Makes the checkpoint that a suite loads, unless it is there already.

    The artifact points at the data and copies nothing. For a suite that loads no existing
    checkpoint, the artifact says so.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        suite: The suite file, word for word.
        checkpoint: The checkpoint that the suite loads.
        fixture: A suite file from whose first checkpoint and mesh a missing checkpoint is
            generated.
    """
    from orbax_bench_core.engine import as_component

    as_component("generate_checkpoint", locals())
