"""Reporting step: tables, pages, verdicts and async study of a run, from its records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from orbax_bench_core import limits
from orbax_bench_core.analysis.async_study import (
    AsyncStudy,
    ParameterCounter,
    async_study,
    study_document,
)
from orbax_bench_core.analysis.best import (
    Observer,
    best_of,
    best_section,
    read_best,
    read_search,
)
from orbax_bench_core.analysis.recovery import (
    PhaseName,
    Recovery,
    recovery_document,
    recovery_of,
)
from orbax_bench_core.analysis.releases import ReleaseSearch, answer, search_document
from orbax_bench_core.analysis.soak import Soak, soak_document, soak_of
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
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.exports.tensorboard import write_tensorboard
from orbax_bench_core.lineage import METRICS, SAMPLES, ManifestWriter
from orbax_bench_core.records import (
    BEST_FILE,
    RECOVERY_FILE,
    SOAK_FILE,
    STUDY_FILE,
    VERDICTS_FILE,
    ResultModel,
    Run,
    RunDirectory,
    RunInfo,
    Series,
    atomic_file,
    repeats_of,
    write_atomically,
    write_parquet,
)
from orbax_bench_core.sweep import Pair, SweepPoint

if TYPE_CHECKING:
    from etils import epath


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

    Without `limits.json` there are none.
    """
    found, hosts = limits.read(run), limits.read_hosts(run)
    if found is None:
        return limits.with_hosts(ExtraColumns(), hosts)
    # The limits are those of one machine and of the run directory's storage.
    points = [
        point for point in info.expansion.plain if point.processes == 1 and point.storage is None
    ]
    columns = limits.limit_columns(limits.operation_limits(summary, points, found))
    return limits.with_hosts(columns, hosts)


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
    run, root, manifest = Run(directory), directory.root, ManifestWriter(directory, deep=deep)
    observer = Observer()
    with atomic_file(root / "summary.csv") as file:
        table = SummaryTable(file)
        summary = summarize(observer.watch(repeats_of(manifest.watch(run.records()))), table)
        table.end()
    with atomic_file(root / SAMPLES) as file:
        write_parquet(directory.records(), file)
    summary = dataclasses.replace(summary, left_out=directory.strays)
    write_atomically(root / METRICS, json.dumps(_medians(summary), indent=1).encode())
    info = settle(run)
    first, extra = next(run.records(), None), limits_of(directory, info, summary)
    search = read_search(directory, info)
    best = best_of(info, observer, search=search)
    if best.cases:
        write_atomically(root / BEST_FILE, best.model_dump_json(indent=1).encode())
    else:
        (root / BEST_FILE).unlink(missing_ok=True)
    answer = best_section(best, str(root))
    document = summary_document(info, summary, first, extra, answer, _beside(directory, info))
    write_atomically(root / "report.md", to_markdown(document).encode())
    write_atomically(root / "report.html", to_html(document).encode())
    write_tensorboard(run)
    manifest.note_report(searched=search is not None)
    return summary


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
    """Returns which options to take, as the report of a run says; None where it is no sweep."""
    found = read_best(directory)
    return None if found is None else best_section(found, str(directory.root))


def publish_verdicts(run: RunDirectory, verdicts: VerdictReport) -> epath.Path:
    """Writes `verdicts.json`, `verdicts.html`, `verdicts.md` with its plots, and `junit.xml`.

    `run` is the run directory of the candidate.

    Returns:
        The HTML page, which needs no other file.
    """
    write_verdicts(run, verdicts)
    document = verdicts_document(verdicts)
    write_figures(document, run.root / _PLOTS)
    page = to_markdown(document, figures=_PLOTS)
    write_atomically(run.root / "verdicts.md", page.encode())
    write_atomically(run.root / "verdicts.html", to_html(document).encode())
    write_atomically(run.root / "junit.xml", junit_xml(verdicts))
    unpaired = any(point.mode == "unpaired" for point in verdicts.points)
    baseline = verdicts.baseline if unpaired else None
    if run.exists():
        settle(Run(run))  # before its digest is noted
    ManifestWriter(run).note_conclusion(VERDICTS_FILE, baseline=baseline)
    return run.root / "verdicts.html"


def settle(run: Run) -> RunInfo:
    """Writes into `run.json` whether a run that no longer goes on came to its end.

    It is complete when every point has all its repeats, or every pair has been settled or has made
    its last look; a pair of which both arms failed has said nothing.

    Returns:
        What `run.json` says now.
    """
    status: Literal["complete", "incomplete"] = "incomplete" if unfinished(run) else "complete"
    run.directory.set_status(status)
    return run.info.model_copy(update={"status": status})


def unfinished(run: Run) -> list[SweepPoint | Pair]:
    """Returns the entries of a run that lack repeats, or have no verdict yet.

    Of a search each point has all repeats when it was dropped, or when the search ended.
    """
    search = read_search(run.directory, run.info)

    def finished(point: SweepPoint) -> bool:
        wanted = run.info.num_repeats
        if search is not None and search.ended:
            wanted = search.dropped.get(point.id, search.rounds)
        return _finished(run, point, wanted)

    return [
        entry
        for entry in run.info.expansion.points
        if not (_settled(run, entry) if isinstance(entry, Pair) else finished(entry))
    ]


def _finished(run: Run, point: SweepPoint, wanted: int) -> bool:
    (series,) = Series.all_of(point)
    return sum(repeat.finished for repeat in run.repeats(series)) >= wanted


def _settled(run: Run, pair: Pair) -> bool:
    repeats = [repeat for series in Series.all_of(pair) for repeat in run.repeats(series)]
    verdict = judge_point(pair, repeats, run.info)
    return verdict.settled and not verdict.failed


def publish_async_study(directory: RunDirectory) -> AsyncStudy:
    """Writes `async_study.json`, `async_study.md` and `async_study.html` from the records of a run.

    Only records are read, so this can be repeated at any time.

    Returns:
        What the study found.

    Raises:
        UserError: There is no run, or it saved no checkpoint in both ways.
        OSError: A file cannot be written.
    """
    run, root = Run(directory), directory.root
    study = async_study(run, ParameterCounter(run.info.suite_file))
    write_atomically(root / STUDY_FILE, study.model_dump_json(indent=1).encode())
    document = study_document(study)
    write_atomically(root / MARKDOWN, to_markdown(document).encode())
    write_atomically(root / PAGE, to_html(document).encode())
    ManifestWriter(directory).note_conclusion(STUDY_FILE)
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
    soak = soak_of(Run(directory), limit_mib)
    _publish_pages(directory, SOAK_FILE, soak, soak_document(soak), _SOAK_PLOTS)
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
    found = recovery_of(Run(directory), added)
    _publish_pages(directory, RECOVERY_FILE, found, recovery_document(found), _RECOVERY_PLOTS)
    return found


def _publish_pages(
    directory: RunDirectory, file: str, found: ResultModel, document: Document, plots: str
) -> None:
    """Writes a conclusion as `<name>.json`, `<name>.md` with its plots, and `<name>.html`."""
    root, name = directory.root, file.removesuffix(".json")
    write_atomically(root / file, found.model_dump_json(indent=1).encode())
    write_figures(document, root / plots)
    write_atomically(root / f"{name}.md", to_markdown(document, figures=plots).encode())
    write_atomically(root / f"{name}.html", to_html(document).encode())
    ManifestWriter(directory).note_conclusion(file)


def publish_search(root: epath.Path, search: ReleaseSearch) -> epath.Path:
    """Writes `bisect.json`, `bisect.html` and `bisect.md` with its plots.

    Returns:
        The HTML page, which needs no other file.
    """
    content = {**search.model_dump(mode="json"), "answer": answer(search)}
    write_atomically(root / "bisect.json", json.dumps(content, indent=1).encode())
    document = search_document(search)
    write_figures(document, root / _SEARCH_PLOTS)
    page = to_markdown(document, figures=_SEARCH_PLOTS)
    write_atomically(root / "bisect.md", page.encode())
    write_atomically(root / "bisect.html", to_html(document).encode())
    return root / "bisect.html"
