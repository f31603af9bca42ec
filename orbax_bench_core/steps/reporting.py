"""Report of a run from its records: tables, pages and TensorBoard's files."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orbax_bench_core import limits
from orbax_bench_core.analysis.best import Best, Observer, best_of, best_section, read_best
from orbax_bench_core.analysis.summary import (
    ExtraColumns,
    RunSummary,
    SummaryTable,
    summarize,
    summary_document,
)
from orbax_bench_core.document import Document, to_html, to_markdown
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import atomic_file, write_atomically
from orbax_bench_core.lineage import METRICS, SAMPLES, ManifestWriter
from orbax_bench_core.records import Repeat, Run, RunDirectory, RunFile, RunInfo, SamplesFile
from orbax_bench_core.steps.conclusions import is_finished, note_status
from orbax_bench_core.steps.retries import read_retries
from orbax_bench_core.sweep import SweepEntry

if TYPE_CHECKING:
    from orbax_bench_core.analysis.soak import Soak
    from orbax_bench_core.exports.tensorboard import EventFiles

_WRITERS: Final = ("matplotlib.figure", "scipy.special", "pyarrow.parquet", "pandas", "jinja2")
"""Libraries that `publish` imports when it needs them, half a second of CPU in all."""

_FILES: Final = {
    "verdicts.html": "the verdicts of its comparison",
    "async_study.html": "saves in the background beside saves that block",
    "soak.html": "growth of memory over many saves",
    "recovery.html": "recovery from kills",
    "samples.parquet": "every sample of every repeat",
    "summary.csv": "every metric of every operation, aggregated",
    "best.json": "the choice of options, as data",
    "limits.json": "what machine and storage can do",
    "tensorboard": "`tensorboard --logdir tensorboard`; its HParams tab compares the points",
    "logs": "what workers printed",
    "lineage.json": "what each file was made from",
}
"""Files that a report links to, and what each is."""

_ALWAYS: Final = frozenset({"samples.parquet", "summary.csv", "tensorboard", "lineage.json"})


def limits_of(run: RunDirectory, info: RunInfo, summary: RunSummary) -> ExtraColumns:
    """Returns columns on how near operations come to the limits that were measured with a run."""
    try:
        found, hosts = limits.read(run), limits.read_hosts(run)
    except UserError as damaged:
        return ExtraColumns(legend=f"Nothing is said of limits: {damaged}.")
    if found is None:
        return limits.with_hosts(ExtraColumns(), hosts)
    # The limits are those of one machine and of the run directory's storage.
    points = [
        point for point in info.expansion.plain if point.processes == 1 and point.storage is None
    ]
    columns = limits.limit_columns(
        limits.operation_limits(summary, points, found), age=found.age_sentence
    )
    return limits.with_hosts(columns, hosts)


def load_writers() -> None:
    """Imports the libraries that outputs are made with, for a time when this process only waits."""
    # They take most of the time of a small run's outputs. What is wrong with one of them is told by
    # what needs it.
    for name in _WRITERS:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def publish(directory: RunDirectory, *, deep: bool = False) -> RunSummary:
    """Writes tables, pages and TensorBoard's files from the records, and sets the status.

    The tables are `samples.parquet`, `summary.csv`, `metrics.json` and, of a sweep, `best.json`,
    the pages `report.md` and `report.html`; `lineage.json` says what each was made from. Only
    records are read, so this can be repeated at any time.
    """
    from orbax_bench_core.exports.tensorboard import EventFiles

    run, root = Run(directory), directory.root
    manifest = ManifestWriter(directory, deep=deep)
    observer = Observer(run.info.expansion.plain)
    event_files = EventFiles(run)
    summary, lacking = _publish_tables(run, observer, manifest, event_files)
    directory.clear_abandoned(run.info.expansion.points)
    info = note_status(run, lacking)
    first, extra = next(run.records(), None), limits_of(directory, info, summary)
    answer = _answers(run, _publish_best(run, best_of(info, observer)))
    noted, beside = _with_retries(info, directory), _beside(directory, info)
    document = summary_document(noted, summary, first, extra, answer, beside)
    write_atomically(root / "report.md", to_markdown(document).encode())
    write_atomically(root / "report.html", to_html(document).encode())
    manifest.note_report()
    return summary


def _with_retries(info: RunInfo, directory: RunDirectory) -> RunInfo:
    """Returns what `run.json` says, with a note for each step that was tried again."""
    notes = (*info.expansion.notes, *(retries.words for retries in read_retries(directory)))
    expansion = info.expansion.model_copy(update={"notes": notes})
    return info.model_copy(update={"expansion": expansion})


def _publish_tables(
    run: Run, observer: Observer, manifest: ManifestWriter, event_files: EventFiles
) -> tuple[RunSummary, list[SweepEntry]]:
    """Writes the tables and TensorBoard's files, for which every record is read once."""
    root, lacking = run.directory.root, list[SweepEntry]()

    def read_once(samples: SamplesFile) -> Iterator[Repeat]:
        """Yields all repeats, and shows each to all that is made of them but the summary."""
        for point in run.points():
            for repeat in point.repeats:
                observer.add(repeat)
            for record in point.records:
                manifest.add(record)
                samples.add(record)
            event_files.add(point.by_arm)
            if not is_finished(point, run.info):
                lacking.append(point.entry)
            yield from point.by_arm

    with (
        atomic_file(root / "summary.csv", durable=False) as file,
        atomic_file(root / SAMPLES, durable=False) as samples_file,
        SamplesFile(samples_file) as samples,
    ):
        table = SummaryTable(file)
        summary = summarize(read_once(samples), table)
        table.end()
    event_files.end()
    summary = dataclasses.replace(summary, left_out=run.directory.strays)
    write_atomically(root / METRICS, json.dumps(_medians(summary), indent=1).encode())
    return summary, lacking


def _publish_best(run: Run, best: Best) -> Best:
    """Writes `best.json` where there is anything to choose, and returns what was found."""
    path = run.directory.root / RunFile.BEST
    if best.cases:
        write_atomically(path, best.model_dump_json(indent=1).encode())
    else:
        path.unlink(missing_ok=True)
    return best


def _beside(directory: RunDirectory, info: RunInfo) -> dict[str, str]:
    """Returns the files beside a report that it links to, those too that are written after it."""
    there = {path.name for path in directory.root.iterdir()} | _ALWAYS
    if info.paired:
        there.add("verdicts.html")
    return {name: what for name, what in _FILES.items() if name in there}


def _medians(summary: RunSummary) -> dict[str, float]:
    """Returns the median seconds of each operation, by names that tell points apart."""
    return {
        f"{operation.time.point} {operation.time.point_id} {operation.time.operation} s": (
            operation.time.median
        )
        for operation in summary.operations
    }


def answer_of(directory: RunDirectory) -> Document | None:
    """Returns what stands above the tables of a run: options to take, drills, a soak; or None."""
    return _answers(Run(directory), read_best(directory))


def _answers(run: Run, best: Best | None) -> Document | None:
    root, sections = run.directory.root, []
    if best is not None:
        sections.append(best_section(best, str(root)))
    judged = _judged_soak(run)
    # They are computed again: there may be more records than the conclusion was drawn from.
    with contextlib.suppress(UserError):
        if (root / RunFile.RECOVERY).exists():
            from orbax_bench_core.analysis.recovery import recovery_of, recovery_section

            sections.append(recovery_section(recovery_of(run)))
        if judged is not None:
            from orbax_bench_core.analysis.soak import soak_of, soak_section

            sections.append(soak_section(soak_of(run, judged.limit_mib)))
    found = [section for section in sections if section is not None]
    if not found:
        return None
    return Document(
        title=run.info.suite_name,
        elements=tuple(element for section in found for element in section.elements),
        brief=tuple(element for section in found for element in section.brief or ()),
        escape=False,
    )


def _judged_soak(run: Run) -> Soak | None:
    if not (run.directory.root / RunFile.SOAK).exists():
        return None
    from orbax_bench_core.analysis.soak import Soak

    return run.directory.read_result(RunFile.SOAK, Soak)
