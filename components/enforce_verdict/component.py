"""Component that fails a pipeline whose candidate has regressed, or that lacks results."""

import os
from typing import List, Optional  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def enforce_verdict(
    pipeline_run: str,
    verdict: str = "",
    allow_inconclusive: bool = False,
    verdicts: dsl.Input[dsl.Dataset] = None,
    lacking: Optional[List[str]] = None,  # noqa: UP006, UP045
) -> None:
    """Fails on REGRESSION or LEAK, or if results are missing, with a message that says which.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        verdict: What compare-baseline or soak returned; empty if nothing is compared.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS, unless an arm lacks an
            operation.
        verdicts: What compare-baseline wrote; the message names what has regressed. A comparison of
            separate runs only warns below 2x; without this input the word counts.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
    """
    from orbax_bench_core.engine import as_component

    as_component("enforce_verdict", locals(), lacking=lacking or ())
