"""Component that counts false alarms and writes the noise passport."""

import os
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def calibrate(
    pipeline_run: str,
    runs: List[str],  # noqa: UP006
    passport: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.Markdown],
    rate: dsl.Output[dsl.Metrics],
    save: str = "",
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Count false alarms of identical arms, and write the noise passport.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        runs: Run directories of A/A comparisons, directories that hold some, or patterns.
        passport: The noise passport, which `orbax-bench ab --passport` takes.
        report: The same with figures, as a page that needs no other file.
        rate: Number of A/A tests, how many said REGRESSION, and the share.
        save: Where to write the passport too; empty for nowhere.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.engine import as_component

    return as_component("calibrate", locals())
