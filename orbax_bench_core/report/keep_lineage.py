"""What the files of a run directory were made from, kept beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.compare import baseline as baselines
from orbax_bench_core.compare.async_study.model import STUDY_FILE
from orbax_bench_core.compare.history.find import find_runs
from orbax_bench_core.compare.judge import VERDICTS_FILE
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.records.machine import UNKNOWN
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.results.lineage import input_digests
from orbax_bench_core.results.lineage_digest import digest_of
from orbax_bench_core.results.lineage_file import (
    BASELINE,
    RECORDS,
    Lineage,
    Seen,
    absolute,
    lineage_of_records,
    read_lineage,
    with_files,
    write_lineage,
)

SAMPLES: Final = "samples.parquet"
_TABLES: Final = (SAMPLES, "summary.csv")
_PAGES: Final = ("report.md", "report.html")
_LIMITS: Final = "limits.json"
_CONCLUSIONS: Final = {
    VERDICTS_FILE: ("verdicts.md", "verdicts.html"),
    STUDY_FILE: ("async_study.md", "async_study.html"),
}
"""What is drawn from the records of a run, and the pages that show it."""


def keep_lineage(run: RunDirectory, lineage: Lineage) -> None:
    """Writes what tables and pages were just made from.

    Args:
        run: The run directory.
        lineage: Its records, and what they were made from.
    """
    records = lineage.made[RECORDS]
    from_records = {RECORDS: records.digest}
    lineage = with_files(run, lineage, [_LIMITS], {})
    limits = lineage.made.get(_LIMITS)
    of_pages = from_records if limits is None else {**from_records, _LIMITS: limits.digest}
    lineage = with_files(run, lineage, _TABLES, from_records)
    lineage = with_files(run, lineage, _PAGES, of_pages)
    earlier = read_lineage(run)
    drawn = {} if earlier is None else earlier.made
    names = [name for data, pages in _CONCLUSIONS.items() for name in (data, *pages)]
    # A conclusion keeps what it was made from, so that it shows when there are other records.
    kept = {name: drawn[name] for name in names if name in drawn}
    write_lineage(run, lineage.model_copy(update={"made": {**lineage.made, **kept}}))


def keep_conclusion(run: RunDirectory, file: str, *, baseline: str | None = None) -> None:
    """Writes what a verdict or a study was just made from.

    Args:
        run: The run directory.
        file: The data of the conclusion, such as `verdicts.json`.
        baseline: The stored baseline that it was compared with, if it was.
    """
    now, known = lineage_of_records(run, run.read_info()), read_lineage(run)
    if known is None:
        seen = Seen()
        for _ in seen.watch(run.records()):
            pass
        known = now.model_copy(update={"ran": seen.ran, "contents": seen.contents})
    inputs = {RECORDS: now.made[RECORDS].digest}
    samples = known.made.get(SAMPLES)
    if samples is not None and samples.inputs == inputs:
        inputs[SAMPLES] = samples.digest
    if baseline is not None:
        inputs[f"{BASELINE}{absolute(baseline)}"] = _digest_if_there(baseline)
    known = known.model_copy(
        update={"points": now.points, "made": {**known.made, RECORDS: now.made[RECORDS]}}
    )
    known = with_files(run, known, [file], inputs)
    write_lineage(run, with_files(run, known, _CONCLUSIONS[file], {file: known.made[file].digest}))


def baseline_digest(path: str) -> str:
    """Returns a digest of the measured records that a baseline means at this moment.

    Where they lie does not count: a promotion that changes what a registry means changes it.

    Args:
        path: What `compare` takes as a baseline.

    Raises:
        SuiteError: There is no baseline any more.
    """
    found = sorted(digest_of(record.model_dump_json().encode()) for record in baselines.load(path))
    return digest_of("\n".join(found).encode())


def digests_of_runs(places: Sequence[str]) -> dict[str, str]:
    """Returns the digest of the records of each run that places hold, by id of the run.

    Args:
        places: Run directories, directories that hold some, or patterns; local or gs://. A run
            that was never published, and a capture, has the word `unknown`.

    Raises:
        SuiteError: A place holds no run.
    """
    found = {}
    for run in find_runs([place for place in places if place]):
        digests = {} if run.info is None else input_digests(RunDirectory(run.place), RECORDS)
        found[f"run {run.run_id}"] = digests.get(RECORDS, UNKNOWN)
    return found


def _digest_if_there(baseline: str) -> str:
    try:
        return baseline_digest(baseline)
    except SuiteError:  # it was there a moment ago, and a verdict is not lost for that
        return UNKNOWN
