"""Component that checks the gate on runs in which nothing changed."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def calibrate(
    runs: List[str],  # noqa: UP006
    passport: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.Markdown],
    rate: dsl.Output[dsl.Metrics],
    save: str = "",
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Counts how often identical arms were told apart, and measures the noise.

    Args:
        runs: Run directories of A/A comparisons, directories that hold some, or patterns.
        passport: The noise passport, which `orbax-bench ab --passport` takes.
        report: Reject rate and noise as text.
        rate: Number of A/A tests, how many said REGRESSION, and the share.
        save: Where to write the passport as well; empty for nowhere.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.analysis.noise import calibration_of
    from orbax_bench_core.lineage import artifact_metadata, file_digest, run_digests

    found = calibration_of(runs)
    with open(passport.path, "w") as file:
        file.write(found.passport.model_dump_json(indent=1))
    with open(report.path, "w") as page:
        page.write(f"# Calibration\n\n```text\n{found.text()}```\n")
    if save:
        passports.save(found.passport, save)
    rate.log_metric("tests", len(found.tests))
    rate.log_metric("rejected", found.rejected)
    if found.tests:
        rate.log_metric("reject rate", found.rejected / len(found.tests))
    inputs = run_digests(runs)
    of_passport = artifact_metadata("passport", digest=file_digest(passport.path), inputs=inputs)
    of_report = artifact_metadata("calibration", digest=file_digest(report.path), inputs=inputs)
    passport.metadata.update(of_passport, runs=",".join(runs))
    report.metadata.update(of_report, runs=",".join(runs))
    rate.metadata.update(artifact_metadata("rate", inputs=inputs), runs=",".join(runs))
