"""Reporting step: tables, pages, verdicts and async study of a run, from its records."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core import limits
from orbax_bench_core.analysis.best import (
    Best,
    Observer,
    best_of,
    best_section,
    read_best,
    read_search,
)
from orbax_bench_core.analysis.summary import (
    ExtraColumns,
    RunSummary,
    SummaryTable,
    summarize,
    summary_document,
)
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    judge_point,
    verdicts_document,
    write_verdicts,
)
from orbax_bench_core.document import Document, to_html, to_markdown, write_figures
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.exports.tensorboard import EventFiles
from orbax_bench_core.files import ResultModel, atomic_file, refuse_links, write_atomically
from orbax_bench_core.lineage import METRICS, SAMPLES, ManifestWriter
from orbax_bench_core.records import Repeat, Run, RunDirectory, RunFile, RunInfo, SamplesFile
from orbax_bench_core.sweep import Pair, SweepEntry

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.analysis.async_study import AsyncStudy
    from orbax_bench_core.analysis.recovery import PhaseName, Recovery
    from orbax_bench_core.analysis.releases import ReleaseSearch
    from orbax_bench_core.analysis.soak import Soak

_WRITERS: Final = ("matplotlib.figure", "scipy.special", "pyarrow.parquet", "jinja2")
"""Libraries that `publish` imports when it needs them, half a second of CPU in all."""

_PLOTS: Final = "verdicts"
_SEARCH_PLOTS: Final = "bisect"
_RECOVERY_PLOTS: Final = "recovery"
_SOAK_PLOTS: Final = "soak"
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

PAGE: Final = "async_study.html"
MARKDOWN: Final = "async_study.md"


def limits_of(run: RunDirectory, info: RunInfo, summary: RunSummary) -> ExtraColumns:
    """Returns columns on how near operations come to the limits that were measured with a run.

    Without `limits.json` there are none; where it is damaged, the legend says so.
    """
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


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Puts off the garbage collector, which goes through all that is kept again and again.

    A report of a large run keeps a million objects, among which there are hardly any cycles.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_writers() -> None:
    """Imports the libraries that outputs are made with, for a time when this process only waits.

    They take most of the time of a small run's outputs. What is wrong with one of them is told by
    what needs it.
    """
    for name in _WRITERS:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


@_no_search_for_cycles()
def publish(directory: RunDirectory, *, deep: bool = False) -> RunSummary:
    """Writes tables, pages and TensorBoard's files from the records, and sets the status.

    The tables are `samples.parquet`, `summary.csv`, `metrics.json` and, of a sweep, `best.json`,
    the pages `report.md` and `report.html`; `lineage.json` says what each was made from. Only
    records are read, so this can be repeated at any time.

    Args:
        directory: The run directory.
        deep: Whether all bytes of a loaded checkpoint are read, however many, to note their digest.

    Returns:
        What the run found.

    Raises:
        UserError: There is no run here, or a record cannot be read.
    """
    run, root = Run(directory), directory.root
    manifest = ManifestWriter(directory, run.info, deep=deep)
    observer = Observer(run.info.expansion.plain)
    event_files = EventFiles(run)
    summary, lacking = _publish_tables(run, observer, manifest, event_files)
    directory.clear_abandoned()
    info = _settle(run, lacking)
    first, extra = next(run.records(), None), limits_of(directory, info, summary)
    search = read_search(directory, info)
    answer = _answers(run, _publish_best(run, best_of(info, observer, search=search)))
    del observer  # what it holds of a large run is as much as a page of it takes
    document = summary_document(info, summary, first, extra, answer, _beside(directory, info))
    write_atomically(root / "report.md", to_markdown(document).encode())
    write_atomically(root / "report.html", to_html(document).encode())
    manifest.note_report(searched=search is not None, known=event_files.digests)
    return summary


def _publish_tables(
    run: Run, observer: Observer, manifest: ManifestWriter, event_files: EventFiles
) -> tuple[RunSummary, list[SweepEntry]]:
    """Writes the tables and TensorBoard's files, for which every record is read once.

    Returns:
        What the run found, and the entries that are not finished.
    """
    root, open_points = run.directory.root, _Unfinished(run)

    def read_once(samples: SamplesFile) -> Iterator[Repeat]:
        """Yields all repeats, and shows each to all that is made of them but the summary."""
        for entry, repeats in run.by_entry(manifest.saw):
            for repeat in sorted(repeats, key=lambda each: (not each.warmup, each.index)):
                observer.add(repeat)
                for host, record in repeat.records.items():
                    manifest.add(record)
                    samples.add(record, repeat.columns[host])
            event_files.add(repeats)
            open_points.add(entry, repeats)
            yield from repeats

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
    return summary, open_points.found


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
    # They are computed anew: there may be more records than the conclusion was drawn from.
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


def publish_verdicts(run: RunDirectory, verdicts: VerdictReport) -> epath.Path:
    """Writes `verdicts.json`, `verdicts.html`, `verdicts.md` with its plots, and `junit.xml`.

    `run` is the run directory of the candidate.

    Returns:
        The HTML page, which needs no other file.
    """
    write_verdicts(run, verdicts)
    document = verdicts_document(verdicts)
    write_figures(document, run.folder(_PLOTS))
    page = to_markdown(document, figures=_PLOTS)
    write_atomically(run.root / "verdicts.md", page.encode())
    write_atomically(run.root / "verdicts.html", to_html(document).encode())
    write_atomically(run.root / "junit.xml", junit_xml(verdicts))
    unpaired = any(point.mode == "unpaired" for point in verdicts.points)
    baseline = verdicts.baseline if unpaired else None
    if run.exists():
        settle(Run(run))  # before its digest is noted
    ManifestWriter(run).note_conclusion(RunFile.VERDICTS, baseline=baseline)
    return run.root / "verdicts.html"


def settle(run: Run) -> RunInfo:
    """Writes into `run.json` whether a run that no longer goes on came to its end.

    It is complete when every point has all its repeats, or every pair has been settled or has made
    its last look; a pair of which both arms failed has said nothing.

    Returns:
        What `run.json` says now.
    """
    return _settle(run, unfinished(run))


def _settle(run: Run, lacking: Sequence[SweepEntry]) -> RunInfo:
    status: Literal["complete", "incomplete"] = "incomplete" if lacking else "complete"
    run.directory.set_status(status)
    return run.info.model_copy(update={"status": status})


def unfinished(run: Run) -> list[SweepEntry]:
    """Returns the entries of a run that lack repeats, or have no verdict yet.

    Of a search each point has all repeats when it was dropped, or when the search ended.
    """
    points = _Unfinished(run)
    for entry, repeats in run.by_entry():
        points.add(entry, repeats)
    return points.found


class _Unfinished:
    """The entries of a run that are not finished, as far as they were looked at.

    Attributes:
        found: They, in the order in which they were added.
    """

    def __init__(self, run: Run) -> None:
        self._info = run.info
        self._search = read_search(run.directory, run.info)
        self.found: list[SweepEntry] = []

    def add(self, entry: SweepEntry, repeats: Sequence[Repeat]) -> None:
        """Looks at an entry by all its repeats."""
        measured = [repeat for repeat in repeats if not repeat.warmup]
        if not self._settled(entry, measured):
            self.found.append(entry)

    def _settled(self, entry: SweepEntry, measured: Sequence[Repeat]) -> bool:
        if isinstance(entry, Pair):
            verdict = judge_point(entry, measured, self._info)
            return verdict.settled and not verdict.failed
        wanted = self._info.num_repeats
        if self._search is not None and self._search.ended:
            wanted = self._search.dropped.get(entry.id, self._search.rounds)
        return sum(repeat.finished for repeat in measured) >= wanted


def publish_async_study(directory: RunDirectory) -> AsyncStudy:
    """Writes `async_study.json`, `async_study.md` and `async_study.html` from the records of a run.

    Only records are read, so this can be repeated at any time.

    Returns:
        What the study found.

    Raises:
        UserError: There is no run, or it saved no checkpoint in both ways.
        OSError: A file cannot be written.
    """
    from orbax_bench_core.analysis.async_study import (
        ParameterCounter,
        async_study,
        study_document,
    )

    run, root = Run(directory), directory.root
    study = async_study(run, ParameterCounter(run.info.suite_file))
    write_atomically(root / RunFile.STUDY, study.model_dump_json(indent=1).encode())
    document = study_document(study)
    write_atomically(root / MARKDOWN, to_markdown(document).encode())
    write_atomically(root / PAGE, to_html(document).encode())
    ManifestWriter(directory).note_conclusion(RunFile.STUDY)
    return study


def publish_soak(directory: RunDirectory, limit_mib: float) -> Soak:
    """Writes `soak.json`, `soak.md` with its plots, and `soak.html` from the records of a run.

    Only records are read, so this can be repeated at any time, also with another limit.

    Returns:
        The verdict, and what it rests on.

    Raises:
        UserError: There is no run, or no soak was measured in it.
        OSError: A file cannot be written.
    """
    from orbax_bench_core.analysis.soak import soak_document, soak_of

    soak = soak_of(Run(directory), limit_mib)
    _publish_pages(directory, RunFile.SOAK, soak, soak_document(soak), _SOAK_PLOTS)
    return soak


def publish_recovery(
    directory: RunDirectory, added: Mapping[PhaseName, float] | None = None
) -> Recovery:
    """Writes `recovery.json`, `recovery.md` with its plots, and `recovery.html` from the records.

    Args:
        directory: The run directory.
        added: Seconds of what this machine cannot show, by phase.

    Returns:
        What the drills found.

    Raises:
        UserError: There is no run, or no drill was measured in it.
        OSError: A file cannot be written.
    """
    from orbax_bench_core.analysis.recovery import recovery_document, recovery_of

    found = recovery_of(Run(directory), added)
    _publish_pages(directory, RunFile.RECOVERY, found, recovery_document(found), _RECOVERY_PLOTS)
    return found


def _publish_pages(
    directory: RunDirectory, file: str, found: ResultModel, document: Document, plots: str
) -> None:
    """Writes a conclusion as `<name>.json`, `<name>.md` with its plots, and `<name>.html`."""
    root, name = directory.root, file.removesuffix(".json")
    write_atomically(root / file, found.model_dump_json(indent=1).encode())
    write_figures(document, directory.folder(plots))
    write_atomically(root / f"{name}.md", to_markdown(document, figures=plots).encode())
    write_atomically(root / f"{name}.html", to_html(document).encode())
    ManifestWriter(directory).note_conclusion(file)


def publish_search(root: epath.Path, search: ReleaseSearch) -> epath.Path:
    """Writes `bisect.json`, `bisect.html` and `bisect.md` with its plots.

    Returns:
        The HTML page, which needs no other file.
    """
    from orbax_bench_core.analysis.releases import answer, search_document

    content = {**search.model_dump(mode="json"), "answer": answer(search)}
    write_atomically(root / "bisect.json", json.dumps(content, indent=1).encode())
    document = search_document(search)
    refuse_links(root / _SEARCH_PLOTS, root)
    write_figures(document, root / _SEARCH_PLOTS)
    page = to_markdown(document, figures=_SEARCH_PLOTS)
    write_atomically(root / "bisect.md", page.encode())
    write_atomically(root / "bisect.html", to_html(document).encode())
    return root / "bisect.html"
