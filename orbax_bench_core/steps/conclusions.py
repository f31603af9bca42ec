"""Status of a run, and its conclusions as files: verdicts, study, soak, drills, release search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    judge_point,
    verdicts_document,
    write_verdicts,
)
from orbax_bench_core.document import Document, to_html, to_markdown, write_figures
from orbax_bench_core.exports.ci import junit_xml
from orbax_bench_core.files import AnyPath, ResultModel, refuse_links, write_atomically
from orbax_bench_core.lineage import ManifestWriter
from orbax_bench_core.records import PointRecords, Run, RunDirectory, RunFile, RunInfo
from orbax_bench_core.sweep import Pair, SweepEntry

if TYPE_CHECKING:
    from orbax_bench_core.analysis.async_study import AsyncStudy
    from orbax_bench_core.analysis.recovery import PhaseName, Recovery
    from orbax_bench_core.analysis.releases import ReleaseSearch
    from orbax_bench_core.analysis.soak import Soak


def settle(run: Run) -> RunInfo:
    """Writes into `run.json` whether a run that no longer goes on came to its end."""
    # It is complete when every point has all its repeats, or every pair has been settled or has
    # made its last look; a pair of which both arms failed has said nothing.
    return note_status(run, unfinished(run))


def note_status(run: Run, lacking: Sequence[SweepEntry]) -> RunInfo:
    """Writes into `run.json` that a run is complete, unless it lacks some of its entries."""
    status: Literal["complete", "incomplete"] = "incomplete" if lacking else "complete"
    run.directory.set_status(status)
    return run.info.model_copy(update={"status": status})


def unfinished(run: Run) -> list[SweepEntry]:
    """Returns the entries of a run that lack repeats, or have no verdict yet."""
    return [point.entry for point in run.points() if not is_finished(point, run.info)]


def is_finished(point: PointRecords, info: RunInfo) -> bool:
    """Returns whether an entry has all its repeats, or its verdict."""
    measured = [repeat for repeat in point.repeats if not repeat.warmup]
    if isinstance(point.entry, Pair):
        verdict = judge_point(point.entry, measured, info)
        return verdict.settled and not verdict.failed
    return sum(repeat.finished for repeat in measured) >= info.num_repeats


def publish_verdicts(run: RunDirectory, verdicts: VerdictReport) -> AnyPath:
    """Writes `verdicts.json`, `verdicts.html`, `verdicts.md` with its plots, and `junit.xml`."""
    write_verdicts(run, verdicts)
    page = _write_pages(run.root, "verdicts", verdicts_document(verdicts))
    write_atomically(run.root / "junit.xml", junit_xml(verdicts))
    unpaired = any(point.mode == "unpaired" for point in verdicts.points)
    baseline = verdicts.baseline if unpaired else None
    if run.exists() and run.read_info().status != "complete":  # as a report of it has found
        settle(Run(run))  # before its digest is noted
    ManifestWriter(run).note_conclusion(RunFile.VERDICTS, baseline=baseline)
    return page


def publish_async_study(directory: RunDirectory) -> AsyncStudy:
    """Writes `async_study.json`, `async_study.md` and `async_study.html` from the records."""
    from orbax_bench_core.analysis.async_study import ParameterCounter, async_study, study_document

    run = Run(directory)
    study = async_study(run, ParameterCounter(run.info.suite_file))
    _conclude(directory, RunFile.STUDY, study, study_document(study), plots=False)
    return study


def publish_soak(directory: RunDirectory, limit_mib: float) -> Soak:
    """Writes `soak.json`, `soak.md` with its plots, and `soak.html` from the records of a run."""
    from orbax_bench_core.analysis.soak import soak_document, soak_of

    soak = soak_of(Run(directory), limit_mib)
    _conclude(directory, RunFile.SOAK, soak, soak_document(soak))
    return soak


def publish_recovery(
    directory: RunDirectory, added: Mapping[PhaseName, float] | None = None
) -> Recovery:
    """Writes `recovery.json`, `recovery.md` with plots and `recovery.html` from the records."""
    from orbax_bench_core.analysis.recovery import recovery_document, recovery_of

    found = recovery_of(Run(directory), added)
    _conclude(directory, RunFile.RECOVERY, found, recovery_document(found))
    return found


def publish_search(root: AnyPath, search: ReleaseSearch) -> AnyPath:
    """Writes `bisect.json`, `bisect.html` and `bisect.md` with its plots."""
    from orbax_bench_core.analysis.releases import answer, search_document

    content = {**search.model_dump(mode="json"), "answer": answer(search)}
    write_atomically(root / "bisect.json", json.dumps(content, indent=1).encode())
    return _write_pages(root, "bisect", search_document(search))


def _conclude(
    directory: RunDirectory,
    file: str,
    found: ResultModel,
    document: Document,
    *,
    plots: bool = True,
) -> None:
    """Writes a conclusion as data and as pages, and notes what it was made from."""
    write_atomically(directory.root / file, found.model_dump_json(indent=1).encode())
    _write_pages(directory.root, file.removesuffix(".json"), document, plots=plots)
    ManifestWriter(directory).note_conclusion(file)


def _write_pages(root: AnyPath, name: str, document: Document, *, plots: bool = True) -> AnyPath:
    """Writes `<name>.html` and `<name>.md`, whose plots lie in the folder `<name>`."""
    if plots:
        refuse_links(root / name, root)
        write_figures(document, root / name)
    markdown, page = root / f"{name}.md", root / f"{name}.html"
    write_atomically(markdown, to_markdown(document, figures=name if plots else None).encode())
    write_atomically(page, to_html(document).encode())
    return page
