"""Step calibrate: noise and reject rate of A/A comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from orbax_bench_core.analysis import noise
from orbax_bench_core.files import write_atomically
from orbax_bench_core.lineage import artifact_metadata, file_digest
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs


@tried_again
def calibrate(runs: Sequence[str], *, passport: str, report: str, save: str = "") -> Outputs[None]:
    """Counts how often identical arms were told apart, and measures the noise.

    Args:
        runs: Run directories of A/A comparisons, directories that hold some, or patterns.
        passport: Where the noise passport is written, which `orbax-bench ab --passport` takes.
        report: Where reject rate and noise are written as text.
        save: Where to write the passport as well; empty for nowhere.

    Returns:
        `passport`, `report`, and `rate`: number of A/A tests, how many said REGRESSION, the share.

    Raises:
        UserError: A place holds no A/A comparison.
    """
    found = noise.calibration_of(runs)
    write_atomically(passport, found.passport.model_dump_json(indent=1).encode())
    write_atomically(report, f"# Calibration\n\n```text\n{found.text()}```\n".encode())
    if save:
        noise.save(found.passport, save)
    of_runs = {"runs": ",".join(filter(None, runs))}
    rate: dict[str, float] = {"tests": len(found.tests), "rejected": found.rejected}
    if found.tests:
        rate["reject rate"] = found.rejected / len(found.tests)
    named = {
        name: Output(
            metadata=artifact_metadata(kind, digest=file_digest(place), path=save or place)
            | of_runs,
            place=place,
            copied=True,
        )
        for name, kind, place in (
            ("passport", "passport", passport),
            ("report", "calibration", report),
        )
    }
    named["rate"] = Output(metadata=rate)
    return Outputs(value=None, named=named)
