"""Report of a run from its records: tables, pages, status, and conclusions as files."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from orbax_bench_core import answers, files, limits, pages, records
from orbax_bench_core.analysis.best import Observer, best_of
from orbax_bench_core.analysis.summary import (
    ExtraColumns,
    RunSummary,
    SummaryTable,
    summarize,
    summary_document,
)
from orbax_bench_core.answers import Answer, Found
from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage import METRICS, SAMPLES, ManifestWriter
from orbax_bench_core.publishing.retries import read_retries
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import SweepEntry

if TYPE_CHECKING:
    from orbax_bench_core.analysis.verdicts import VerdictReport
    from orbax_bench_core.exports.tensorboard import EventFiles

_WRITERS: Final = ("scipy.special", "pyarrow.parquet", "pandas")
"""Libraries that `publish` imports when it needs them, half a second of CPU in all."""

_FILES: Final = {
    **{each.page: each.shows for each in answers.ANSWERS if each.pages},
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


def limits_of(
    run: records.RunDirectory, info: records.RunInfo, summary: RunSummary
) -> ExtraColumns:
    """Returns columns on how near operations come to the limits that were measured with a run.

    Points that name a storage of their own, or have several processes, get no columns: the limits
    are those of one machine and of the run directory's storage. Limits that cannot be read are a
    note below the table, not an error.
    """
    try:
        found, hosts = limits.read(run), limits.read_hosts(run)
    except UserError as damaged:
        return ExtraColumns(legend=f"Nothing is said of limits: {damaged}.")
    if found is None:
        return limits.with_hosts(ExtraColumns(), hosts)
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


class Report(NamedTuple):
    """A report that was written: what it is made from, and what it shows."""

    summary: RunSummary
    document: pages.Document


def publish(directory: records.RunDirectory, *, deep: bool = False) -> Report:
    """Writes tables, pages and TensorBoard's files from the records, and sets the status.

    The tables are `samples.parquet`, `summary.csv`, `metrics.json` and, of a sweep, `best.json`,
    the pages `report.md` and `report.html`; `lineage.json` says what each was made from. Only
    records are read, so this can be repeated at any time.
    """
    from orbax_bench_core.exports.tensorboard import EventFiles

    run, root = records.Run(directory), directory.root
    manifest = ManifestWriter(directory, deep=deep)
    observer = Observer(run.info.expansion.plain)
    event_files = EventFiles(run)
    summary, lacking = _publish_tables(run, observer, manifest, event_files)
    records.clear_abandoned(directory, run.info.expansion.points)
    info = settle(run, lacking)
    best, path = best_of(info, observer), root / answers.BEST.file
    if best.cases:
        files.write_atomically(path, best.model_dump_json(indent=1).encode())
    else:  # there is nothing to choose
        path.unlink(missing_ok=True)
    document = report_of(directory, summary)
    _write_pages(root, "report", document)
    manifest.note_report()
    return Report(summary, document)


def report_of(
    directory: records.RunDirectory, summary: RunSummary, *, metrics: bool = False
) -> pages.Document:
    """Returns the report of a run that was published; with `metrics` it has every metric.

    Raises:
        UserError: The run directory has no readable `run.json`.
    """
    run = records.Run(directory)
    said = (*run.info.expansion.notes, *(retries.words for retries in read_retries(directory)))
    expansion = run.info.expansion.model_copy(update={"notes": said})
    there = {path.name for path in directory.root.iterdir()} | _ALWAYS
    if run.info.paired:  # they are written after this report
        there.add("verdicts.html")
    return summary_document(
        run.info.model_copy(update={"expansion": expansion}),
        summary,
        str(directory.root),
        example=next(run.records(), None),
        extra=limits_of(directory, run.info, summary),
        answers=_answers(directory),
        files={name: what for name, what in _FILES.items() if name in there},
        metrics=metrics,
    )


def _publish_tables(
    run: records.Run, observer: Observer, manifest: ManifestWriter, event_files: EventFiles
) -> tuple[RunSummary, list[SweepEntry]]:
    """Writes the tables and TensorBoard's files, for which every record is read once."""
    root, lacking = run.directory.root, list[SweepEntry]()

    def read_once(samples: records.SamplesFile) -> Iterator[records.Repeat]:
        """Yields all repeats, and shows each to all that is made of them but the summary."""
        for point in run.points():
            for repeat in point.repeats:
                observer.add(repeat)
            for record in point.records:
                manifest.add(record)
                samples.add(record)
            event_files.add(point.by_arm)
            if not answers.is_finished(point, run.info):
                lacking.append(point.entry)
            yield from point.by_arm

    with (
        files.atomic_file(root / "summary.csv", durable=False) as file,
        files.atomic_file(root / SAMPLES, durable=False) as samples_file,
        records.SamplesFile(samples_file) as samples,
    ):
        table = SummaryTable(file)
        summary = summarize(read_once(samples), table)
        table.end()
    event_files.end()
    summary = dataclasses.replace(summary, left_out=run.directory.strays)
    medians = {
        f"{time.point} {time.point_id} {time.operation} s": time.median
        for time in (operation.time for operation in summary.operations)
    }
    files.write_atomically(root / METRICS, json.dumps(medians, indent=1).encode())
    return summary, lacking


def _answers(run: RunDirectory) -> dict[str, pages.Document]:
    """Returns the documents of the answers of a run, by name: the choice of options first."""
    found, names = dict[str, pages.Document](), set(files.names_in(run.root))
    for each in sorted(answers.ANSWERS, key=lambda each: not each.in_report):
        if each.linked and each.file in names and (said := each.read(run)) is not None:
            name = each.name.replace("_", " ").capitalize()
            found[name] = each.parts.document(said, str(run.root))
    return found


def settle(run: records.Run, lacking: Sequence[SweepEntry] | None = None) -> records.RunInfo:
    """Writes into `run.json` whether a run that no longer goes on came to its end.

    `lacking` are the entries that did not, where that is known already.

    Returns:
        The information of the run, with the status that was written.
    """
    lacks = bool(answers.unfinished(run) if lacking is None else lacking)
    status: Literal["complete", "incomplete"] = "incomplete" if lacks else "complete"
    run.directory.set_status(status)
    return run.info.model_copy(update={"status": status})


def publish_verdicts(run: records.RunDirectory, verdicts: VerdictReport) -> files.AnyPath:
    """Writes `verdicts.json`, `verdicts.html`, `verdicts.md` and `junit.xml`.

    Returns:
        The path of `verdicts.html`.
    """
    from orbax_bench_core.exports.ci import junit_xml

    page = write_answer(run.root, answers.VERDICTS, verdicts)
    files.write_atomically(run.root / "junit.xml", junit_xml(verdicts))
    unpaired = any(point.mode == "unpaired" for point in verdicts.points)
    baseline = verdicts.baseline if unpaired else None
    if run.exists() and run.read_info().status != "complete":  # as a report of it has found
        settle(records.Run(run))  # before its digest is noted
    ManifestWriter(run).note_conclusion(answers.VERDICTS.file, baseline=baseline)
    return page


def publish_answer(run: RunDirectory, answer: Answer[Found], **options: Any) -> Found:
    """Answers a question from the records of a run, and writes the answer next to them.

    Raises:
        UserError: The records hold no answer to it.
    """
    assert answer.parts.answer is not None, f"{answer.name} is made from several runs"
    found = answer.parts.answer(records.Run(run), **options)
    write_answer(run.root, answer, found)
    ManifestWriter(run).note_conclusion(answer.file)
    return found


def write_answer(root: files.AnyPath, answer: Answer[Found], found: Found) -> files.AnyPath:
    """Writes an answer as data, as Markdown and as a page, and returns the page.

    Raises:
        OSError: A file cannot be written.
    """
    files.write_atomically(root / answer.file, found.model_dump_json(indent=1).encode())
    return _write_pages(root, answer.name, answer.parts.document(found, str(root)))


def _write_pages(root: files.AnyPath, name: str, document: pages.Document) -> files.AnyPath:
    """Writes `<name>.html` and `<name>.md`, and returns the page."""
    page = root / f"{name}.html"
    files.write_atomically(root / f"{name}.md", pages.to_markdown(document).encode())
    files.write_atomically(page, pages.to_html(document).encode())
    return page
