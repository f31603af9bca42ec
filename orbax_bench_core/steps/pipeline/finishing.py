"""Steps that judge a pipeline's run: its report, its state, its comparison, and its capture."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from etils import epath

from orbax_bench_core import lineage, pages
from orbax_bench_core.analysis.acceptance import standing, with_acceptance
from orbax_bench_core.analysis.summary import RunSummary, summarize
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    compare_stored,
    headline,
    read_verdicts,
    read_verdicts_file,
)
from orbax_bench_core.answers import state_of, unfinished
from orbax_bench_core.baselines import publish_run
from orbax_bench_core.config import name_of, parse_suite
from orbax_bench_core.errors import UserError, shown
from orbax_bench_core.exit_codes import CODES, Outcome, State, exit_code
from orbax_bench_core.files import (
    checked_path,
    names_in,
    read_at_most,
    read_json,
    write_atomically,
)
from orbax_bench_core.lineage import artifact_metadata, baseline_digest, bounded_metrics
from orbax_bench_core.records import Run, RunDirectory, RunFile
from orbax_bench_core.steps.notifiers import Notifiers
from orbax_bench_core.steps.pipeline.ending import RunEnding
from orbax_bench_core.steps.pipeline.outputs import NotPassed, Outputs, StepOutput, tried_again
from orbax_bench_core.steps.planning import check_modules
from orbax_bench_core.steps.point import SAID
from orbax_bench_core.steps.reporting import publish, publish_verdicts, read_retries
from orbax_bench_core.sweep import Pair, expand

_SHOWN: Final = 20
"""Lines of what is lacking: a later step receives them in one argument, with its other inputs."""


@tried_again
def aggregate(output_directory: str) -> Outputs[list[str]]:
    """Write samples, summary, report and TensorBoard's files; returns what is missing.

    They are written from the existing records: a lost step loses only its own points.

    Args:
        output_directory: The run directory.

    Returns:
        The value names what is lacking, a line each and 20 of them at most: steps that left
        nothing, points that are not complete or have failed repeats, and files that had to be left
        out. `samples`, `summary`, `report` and `metrics`, the median seconds by point and
        operation, are files of the run directory, `tensorboard` is a folder there.

    Raises:
        UserError: There is no run here.
    """
    run = RunDirectory(output_directory)
    found = publish(run)
    files = {"samples": lineage.SAMPLES, "summary": "report.md", "report": "report.html"}
    named = {kind: StepOutput.of_run(run, name, kind) for kind, name in files.items()}
    medians = read_json(run.root / lineage.METRICS)
    named["metrics"] = StepOutput(
        metadata=lineage.bounded_metrics(medians.items()),
        place=str(run.root / lineage.METRICS),
        copied=True,
    )
    of_events = lineage.output_metadata(run, lineage.TENSORBOARD, "tensorboard")
    named["tensorboard"] = StepOutput(metadata=of_events, place=str(run.root / lineage.TENSORBOARD))
    return Outputs(value=lacking_of(Run(run), found), named=named)


def lacking_of(run: Run, summary: RunSummary) -> list[str]:
    """Returns the gaps of a report, a line each and 20 of them at most.

    It is steps that were lost, incomplete points, failed repeats and files that were left out;
    failures of a comparison are part of its verdict.
    """
    lacking = list(_lacking(run, summary))
    if lacking:
        lacking = [*_most_frequent_error(summary), *lacking]
    more = [f"and {len(lacking) - _SHOWN} more"] if len(lacking) > _SHOWN else []
    return [*lacking[:_SHOWN], *more]


def _most_frequent_error(summary: RunSummary) -> Iterator[str]:
    """Yields what failed most repeats, and how many; nothing if no error is known."""
    found = collections.Counter[str]()
    for point in summary.points:
        for failure in point.failures:
            found[failure.error.said] += len(failure.repeats)
    for error, times in found.most_common(1):
        yield f"{times} of {found.total()} failed repeats: {error}"


def _lacking(run: Run, summary: RunSummary) -> Iterator[str]:
    entries = run.info.expansion.points
    points = lineage.point_digests(run.directory.root, [entry.id for entry in entries])
    for name, ids in lineage.lost_batches(run.directory, points).items():
        yield f"the step of {name} left nothing, and {len(ids)} of its points have no record"
    for entry in unfinished(run):
        yield f"{entry.name} {entry.id}: incomplete"
    if not any(isinstance(entry, Pair) for entry in entries):
        for point in summary.points:
            if point.failed:
                yield f"{point.point} {point.point_id}: {point.failed} of its repeats failed"
    yield from summary.left_out


_SUCCEEDED: Final = ("", "SUCCEEDED", "COMPLETE")
"""What services call a run whose steps all succeeded; empty if nothing was said."""
_RUN_ID: Final = 8
"""Characters of a run's id in the name of its folder."""
_PAGES: Final = ("report.md", "report.html")


def run_folder(output_directory: str, pipeline_run: str = "", slice_name: str = "") -> str:
    """Returns the run directory of a slice, in the folder of a run: the existing one, or a new one.

    Every step of a run gets the same one, also a step that is tried again.

    Args:
        output_directory: The folder above it, or the run directory itself.
        pipeline_run: Id of the run where each has a folder of its own, whose name begins with the
            time in UTC; empty if none has.
        slice_name: Name of the slice where each has a folder of its own; empty if none has.

    Raises:
        UserError: The output directory is no place for a run.
    """
    folder = output_directory.rstrip("/")
    if pipeline_run:
        ending = f"Z-{pipeline_run[:_RUN_ID]}"
        try:
            names = names_in(epath.Path(checked_path(folder)))
        except ValueError as error:
            raise UserError(f"output_directory: {error}") from None
        there = [name for name in names if name.endswith(ending)]
        new = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%S}{ending}"
        folder = f"{folder}/{there[0] if there else new}"
    return f"{folder}/{slice_name}" if slice_name else folder


_ROLES: Final[dict[str, pages.Role]] = {"PASS": "good", "INCONCLUSIVE": "unsure"}


def _document(
    state: str, reasons: Sequence[str], runs: Sequence[tuple[str, str, Sequence[str]]]
) -> pages.Document:
    """Returns how runs ended; each has its directory, its state and the reasons, a line each."""
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    first = reasons[0] if reasons else "nothing is known of the run"
    parts = (
        pages.Section(f"{own}: {pages.code(place)}", (pages.Text(items=tuple(lines)),))
        for place, own, lines in runs
    )
    return pages.Document(
        about="How the run ended",
        headline=pages.Callout(state, f"{first}{more}", _ROLES.get(state, "bad")),
        summary=tuple(parts),
    )


@tried_again
def finish(
    output_directory: str,
    *,
    suite: str = "",
    pipeline_run: str = "",
    engine_run: str = "",
    slice_names: Sequence[str] = (),
    status: str = "",
    notifiers: Notifiers | None = None,
) -> Outputs[str]:
    """Tell the state of a run, then write what its report lacks; returns the state.

    It always runs last, even if no other step ran: a refused suite, an image that was not pulled
    and a lost step leave a report that says so.

    Args:
        output_directory: The run directory.
        suite: The suite file, word for word; its mistakes are told where nothing was planned.
        pipeline_run: Id of the run where each has a folder of its own; empty if none has.
        engine_run (ID): The engine's own id of this run, as given to plan-sweep: the run of another
            id stays unchanged, and this one has failed.
        slice_names: Names of slices where each has a folder of its own; empty if none has.
        status (WORD): How the other steps ended, if the engine says so: SUCCEEDED or another word,
            in any case.
        notifiers: Where the state is told as well; None for what the environment variables say.

    Returns:
        The value is the state: REGRESSION, FAILED, INCONCLUSIVE, ACCEPTED (a known REGRESSION) or
        PASS, the worst of all slices.
        `ending` is the state and the reasons as Markdown; `report` is the page of the run, or of
        several slices a page that names theirs; `metrics` is the state with medians and ratios. A
        run that was judged has `verdicts` and `verdicts_report`, unless it has several slices.

    Raises:
        UserError: A record cannot be read, or a slice has no such name.
        OSError: A file cannot be read or written.
    """
    notifiers = notifiers or Notifiers.of()
    folder = run_folder(output_directory, pipeline_run)
    if apart := [name for name in slice_names if "/" in name or name in ("", ".", "..")]:
        raise UserError(f"slices: {shown(apart[0])} is no name of a slice, such as v5e-2x4")
    places = [f"{folder.rstrip('/')}/{name}" for name in dict.fromkeys(slice_names)] or [folder]
    endings = [_ending(place, suite, status, engine_run, notifiers) for place in places]
    # People are told before anything is written, for which there may be no room.
    states = [ending.tell() for ending in endings]
    state = min(states, key=list(CODES).index)
    reasons = tuple(dict.fromkeys(line for ending in endings for line in ending.lines))
    print(RunEnding.of(state, reasons, folder).line, flush=True)
    print(f"{SAID}{state}: {'; '.join(reasons)}", flush=True)
    for place, ending in zip(places, endings, strict=True):
        ending.write()
        notifiers.renew_site(place)
    of_runs = [
        (place, own, (*ending.lines, *(each.words for each in read_retries(RunDirectory(place)))))
        for place, own, ending in zip(places, states, endings, strict=True)
    ]
    document = _document(state, reasons, of_runs)
    contents = {
        "ending": pages.to_markdown(document).encode(),
        "report": pages.to_html(document).encode(),
    }
    told = RunEnding.of(state, reasons, folder).metadata
    if any(not _is_of(RunDirectory(place), engine_run) for place in places):
        print(RunEnding.of(state, reasons, folder, contents["report"]).line, flush=True)
        return Outputs(
            value=state,
            named={
                "metrics": StepOutput(metadata={"state": state}),
                **{
                    name: StepOutput(
                        metadata=lineage.artifact_metadata(name) | told, content=content
                    )
                    for name, content in contents.items()
                },
            },
        )
    root = epath.Path(folder)
    files = {"ending": root / lineage.ENDING, "report": root / "report.html"}
    write_atomically(files["ending"], contents["ending"])
    if RunDirectory(folder).exists():
        lineage.note_ending(RunDirectory(folder))
    else:
        write_atomically(files["report"], contents["report"])
    named = {
        name: StepOutput(
            metadata=lineage.artifact_metadata(
                name, digest=lineage.file_digest(str(path)), path=str(path)
            )
            | told,
            place=str(path),
            copied=True,
        )
        for name, path in files.items()
    }
    named |= _results(state, [RunDirectory(place) for place in places])
    page = read_at_most(str(named.get("verdicts_report", named["report"]).place))
    print(RunEnding.of(state, reasons, folder, page).line, flush=True)
    return Outputs(value=state, named=named)


def _results(state: str, runs: Sequence[RunDirectory]) -> dict[str, StepOutput]:
    """Returns the results of runs as outputs: a step that fails by its verdict leaves none."""
    words: dict[str, str] = {"state": state}
    numbers, named = list[tuple[str, float]](), dict[str, StepOutput]()
    for run in filter(RunDirectory.exists, runs):
        of_slice = f"{run.root.name} " if len(runs) > 1 else ""
        found = list(read_json(run.root / lineage.METRICS).items())
        if (run.root / RunFile.VERDICTS).exists():
            judged = read_verdicts(run)
            found += _ratios(judged)
            if not of_slice:
                words["verdict"] = judged.word
                kinds = (("verdicts", "verdicts.json"), ("verdicts-report", "verdicts.html"))
                for kind, file in kinds:
                    named[kind.replace("-", "_")] = StepOutput.of_run(run, file, kind)
        numbers += [(f"{of_slice}{name}", value) for name, value in found]
    named["metrics"] = StepOutput(metadata={**words, **lineage.bounded_metrics(numbers)})
    return named


class _Ending(NamedTuple):
    """How a run ended, as its records say: what to tell, and what its directory lacks."""

    lines: tuple[str, ...]  # the reasons
    tell: Callable[[], State]  # tells the state, and returns it
    write: Callable[[], object] = tuple  # writes what is lacking


def _ending(
    directory: str, suite: str, status: str, engine_run: str, notifiers: Notifiers
) -> _Ending:
    """Reads how the run in a directory ended, and writes nothing."""
    run, failed = RunDirectory(directory), status.upper() not in _SUCCEEDED
    if not run.exists() or not _is_of(run, engine_run):
        name, why = _never_begun(suite, status)
        if run.exists():
            why = (
                f"nothing was measured: the directory holds the run {shown(run.engine_run)}, and "
                f"this is {shown(engine_run)}; give each run a folder of its own"
            )
        tell = partial(notifiers.failed, name, directory, why, renews=False, begun=False)
        return _Ending((why,), tell)
    read, lacks_report = Run(run), not lineage.made_from_these_records(run, *_PAGES)
    summary = dataclasses.replace(summarize(read.repeats()), left_out=run.strays)
    lacking = [*([status] if _is_sentence(status) and failed else []), *lacking_of(read, summary)]
    judged = lineage.made_from_these_records(run, RunFile.VERDICTS) or not read.info.paired
    if lacks_report:
        a_step_failed = "the step that puts the records together left nothing: its log says why"
    elif not judged:
        a_step_failed = "the step that gives the verdict left nothing: its log says why"
    else:
        a_step_failed = "a step failed after the report and the verdict: its log says why"

    def write(verdicts: VerdictReport | None = None) -> None:
        if lacks_report:
            publish(run)
        if verdicts is not None:
            publish_verdicts(run, verdicts)

    if not (read.info.paired or (run.root / RunFile.VERDICTS).exists()):
        told = state_of(run, read.info.model_copy(update={"status": "complete"}))
        if failed and not exit_code(told.outcome) and not lacking:
            lacking = [a_step_failed]
        lines = (*filter(None, [told.answer]), *(lacking or ["every point is complete"]))
        name, state = read.info.suite_name, told.outcome.lacking(lacking).state
        tell = partial(notifiers.ended, name, state, directory, lines, renews=False)
        return _Ending(lines, tell, write)
    found = read_verdicts(read) if judged else compare_stored(directory, directory)
    found = with_acceptance(found, directory)
    outcome = compared(found, directory)
    if failed and not exit_code(outcome) and not lacking:  # no verdict explains that it failed
        lacking = [a_step_failed]
    known, answer = standing(found, directory), headline(found)
    says = answer.text if answer.word == outcome.lacking(lacking).state else answer.said
    return _Ending(
        (says, *([known.said] if known else []), *lacking),
        partial(notifiers.judged, found, outcome, directory, lacking, renews=False),
        write if judged else partial(write, found),
    )


def _is_of(run: RunDirectory, engine_run: str) -> bool:
    """Returns whether a directory holds no run, or the one of this id; empty is any."""
    return not engine_run or not run.exists() or run.engine_run == engine_run


def _is_sentence(status: str) -> bool:
    """Returns whether a status says more than a word, as of who has seen a command end."""
    return " " in status


@functools.lru_cache(maxsize=1)  # all slices have one suite
def _never_begun(suite: str, status: str) -> tuple[str | None, str]:
    """Returns the name of a suite of which nothing was planned, where it is known, and why."""
    name = None
    try:
        if suite:
            loaded = parse_suite(suite)
            name = loaded.suite.suite_name
            expand(loaded)
            check_modules(loaded.suite)
    except UserError as refused:
        return name or name_of(suite), f"the suite was refused: {refused}"
    known = "the log of the first step says why, or why it never started"
    return name, f"no run was begun: {status if _is_sentence(status) else known}"


WORDS: Final = ("", "PASS", "INCONCLUSIVE", "REGRESSION")
LEAK: Final = "LEAK"


def compared(found: VerdictReport, output_directory: str) -> Outcome:
    """Returns the outcome of a comparison, of which the candidate's run directory may lack repeats.

    A step that was lost leaves no failure, so that the verdicts alone could be a PASS.
    """
    run = RunDirectory(output_directory)
    return found.outcome.lacking(run.exists() and unfinished(Run(run)))


@tried_again
def compare_baseline(
    output_directory: str, *, baseline: str = "", notifiers: Notifiers | None = None
) -> Outputs[str]:
    """Judge a run; returns REGRESSION, PASS or INCONCLUSIVE.

    Both its arms are compared, or the run with a stored baseline, which only warns below 2x.

    Args:
        output_directory: The run directory to judge.
        baseline: A stored baseline, a registry of them, REGISTRY/NAME with the id, label, commit or
            tag of a capture, or a run directory; by default both arms of the run.
        notifiers: Where else the verdict is told; None for what the environment variables say.

    Returns:
        The value is the verdict in one word; `verdicts`, `comparison` and `report` are files of the
        run directory, and `ratios` are candidate over baseline by point and operation, with the
        word as `verdict`: the experiment of a run on Vertex AI shows both.

    Raises:
        UserError: There is no run here, or nothing to compare it with.
    """
    run = RunDirectory(output_directory)
    notifiers = notifiers or Notifiers.of()
    with notifiers.on_failure(None, output_directory):
        found = compare_stored(baseline or output_directory, output_directory)
        found = with_acceptance(found, output_directory)
        publish_verdicts(run, found)
    told = notifiers.webhook is not None
    failed = told and compared(found, output_directory).incomplete
    notifiers.verdicts(found, output_directory, failed=failed)
    said = {"baseline": baseline or "arm", "verdict": found.word}
    files = (
        ("verdicts", "verdicts.json", "verdicts"),
        ("comparison", "verdicts.md", "comparison"),
        ("report", "verdicts.html", "verdicts-report"),
    )
    named = {output: StepOutput.of_run(run, name, kind, more=said) for output, name, kind in files}
    named["ratios"] = StepOutput(
        metadata={"verdict": found.word, **bounded_metrics(_ratios(found))}
    )
    return Outputs(value=found.word, named=named)


def _ratios(found: VerdictReport) -> Iterator[tuple[str, float]]:
    """Yields candidate over baseline, by point and operation."""
    for point in found.points:
        for operation in point.operations:
            if operation.verdict.ratio is not None:
                name = f"{point.point} {point.point_id} {operation.operation} ratio"
                yield name, operation.verdict.ratio


@tried_again
def enforce_verdict(
    verdict: str = "",
    *,
    verdicts: str | None = None,
    lacking: Sequence[str] = (),
    allow_inconclusive: bool = False,
    notifiers: Notifiers | None = None,
) -> Outputs[str]:
    """Fail unless a verdict is good enough and nothing is missing; returns the verdict.

    If `verdicts.json` says that the runs were measured separately, a verdict only warns below 2x;
    without that file the word counts.

    Args:
        verdict: The word that compare-baseline or soak returned; empty without any.
        verdicts (FILE): verdicts.json of the run, to say what regressed.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
        allow_inconclusive: Exit with 0 rather than 4 when there is no clear verdict, unless an arm
            lacks an operation.
        notifiers: Where the state of the suite is told as well; None for nowhere, as
            compare-baseline has told it.

    Returns:
        The value is the verdict.

    Raises:
        NotPassed: It is not good enough, or something is lacking; the message names it.
        UserError: It is no verdict or not that of the file, the file cannot be read, or there is
            none for a webhook.
    """
    if notifiers is not None and notifiers.webhook is not None and verdicts is None:
        raise UserError("a webhook is told of a suite, which verdicts.json names: give --verdicts")
    if verdict not in (*WORDS, LEAK):
        raise UserError(f"not a verdict: {shown(verdict)}; it is one of {', '.join(WORDS[1:])}")
    report = None if verdicts is None else read_verdicts_file(verdicts)
    found = Outcome(word=verdict)
    if verdict and report is not None:
        if report.word != verdict:
            raise UserError(f"{verdicts} says {report.word}, and the verdict given is {verdict}")
        found = report.outcome
    if found.only_warns and verdict != "PASS":
        said = f"{verdict}: {headline(report).text}" if report else verdict
        print(f"{SAID}warning, for both sides were measured apart: {said}", flush=True)
    own = exit_code(found, allow_inconclusive=allow_inconclusive)
    code = exit_code(found.lacking(lacking), allow_inconclusive=allow_inconclusive)
    if notifiers is not None and notifiers.webhook is not None and report is not None:
        folder = _folder_of(verdicts or "")
        notifiers.judged(report, compared(report, folder), folder, lacking)
    if code:
        lines = [line.strip() or "(no name)" for line in lacking]
        # A sweep may lack thousands.
        said = "; ".join(UserError(*(_reasons(verdict, report) if own else ()), *lines).said)
        raise NotPassed(said, code)
    return Outputs(value=verdict)


def _reasons(verdict: str, report: VerdictReport | None) -> Iterator[str]:
    if report is None:
        yield verdict
        return
    if report.exploratory:
        yield report.exploratory
    if verdict != "PASS":
        yield f"{verdict}: {headline(report).text}"
    yield from (f"left out: {line}" for line in report.left_out)
    yield from (f"{point.point}: an arm failed" for point in report.points if point.failed)


def _folder_of(place: str) -> str:
    """Returns the folder of a file, local or gs://, whatever folder a command is called in."""
    return place.rpartition("/")[0] if "://" in place else str(Path(place).absolute().parent)


@tried_again
def publish_baseline(
    output_directory: str,
    registry: str,
    *,
    arm: str = "candidate",
    promote: bool = False,
    revision: str = "",
    force: bool = False,
    verdict: str = "",
    allow_inconclusive: bool = False,
) -> Outputs[str]:
    """Capture a run in a registry of baselines; returns the id of the capture, or none.

    It has every raw sample. enforce-verdict only warns of a slow-down between separate runs; here
    it counts, so that the next run is not compared with a slower one.

    Args:
        output_directory: The run directory.
        registry: The registry: a folder or a gs:// prefix.
        arm: Which side of a paired run: `baseline` or `candidate`.
        promote: Make it the baseline of its points.
        revision: File it under this; by default the commit of the code under test.
        force: Promote code with uncommitted changes.
        verdict (WORD): What compare-baseline returned; REGRESSION and INCONCLUSIVE are not
            captured.
        allow_inconclusive: Also capture an INCONCLUSIVE run.

    Returns:
        The value is the id of the capture, and empty where there is none; `baseline` is its folder
        in the registry.

    Raises:
        UserError: The run cannot be a baseline, or the word is no verdict.
    """
    if verdict not in WORDS:
        raise UserError(f"not a verdict: {shown(verdict)}; it is one of {', '.join(WORDS[1:])}")
    run = RunDirectory(output_directory)
    if verdict not in ("", "PASS", *(["INCONCLUSIVE"] if allow_inconclusive else [])):
        print(f"{SAID}{output_directory} is not captured: {verdict}", flush=True)
        metadata = artifact_metadata("baseline", run, path=registry) | {"not_captured": verdict}
        return Outputs(value="", named={"baseline": StepOutput(metadata=metadata)})
    captured, folder = publish_run(
        run, registry, arm=arm, promote=promote, revision=revision or None, force=force
    )
    place = str(folder)
    metadata = artifact_metadata("baseline", run, digest=baseline_digest(place), path=place)
    metadata |= {"revision": captured.revision, "capture": captured.id, "code": captured.code.words}
    named = {"baseline": StepOutput(metadata=metadata, place=place)}
    return Outputs(value=captured.id, named=named)
