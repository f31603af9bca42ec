"""Component that checks the gate on runs in which nothing changed."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


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
    """Counts how often identical arms were told apart, and measures the noise.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from answering out of its cache.
        runs: Run directories of A/A comparisons, directories that hold some, or patterns.
        passport: The noise passport, which `orbax-bench ab --passport` takes.
        report: Reject rate and noise as text.
        rate: Number of A/A tests, how many said REGRESSION, and the share.
        save: Where to write the passport as well; empty for nowhere.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, calibrate

    with ErrorsAsMessages():
        calibrate(runs, passport=passport.path, report=report.path, save=save).into(
            passport=passport, report=report, rate=rate
        )
