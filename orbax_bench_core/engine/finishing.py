"""Steps that end a pipeline's run: its report, and its state, whatever became of the others."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from orbax_bench_core import lineage, pages
from orbax_bench_core.analysis.acceptance import standing, with_acceptance
from orbax_bench_core.analysis.summary import RunSummary, summarize
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    compare_stored,
    headline,
    read_verdicts,
)
from orbax_bench_core.answers import state_of, unfinished
from orbax_bench_core.config import name_of, parse_suite
from orbax_bench_core.engine.ending import RunEnding
from orbax_bench_core.engine.judging import compared, ratios
from orbax_bench_core.engine.outputs import Outputs, StepOutput
from orbax_bench_core.engine.planning import check_modules
from orbax_bench_core.engine.point import SAID
from orbax_bench_core.engine.retrying import tried_again
from orbax_bench_core.errors import UserError, shown
from orbax_bench_core.exit_codes import CODES, WORDS, State, exit_code
from orbax_bench_core.files import names_in, read_at_most, read_json, write_atomically
from orbax_bench_core.publishing import Notifiers, publish, publish_verdicts, read_retries
from orbax_bench_core.records import Run, RunDirectory, RunFile
from orbax_bench_core.sweep import Pair, expand

_SHOWN: Final = 20
"""Lines of what is lacking: a later step receives them in one argument, with its other inputs."""
_SUCCEEDED: Final = ("", "SUCCEEDED", "COMPLETE")
"""What services call a run whose steps all succeeded; empty if nothing was said."""
_RUN_ID: Final = 8
"""Characters of a run's id in the name of its folder."""
_PAGES: Final = ("report.md", "report.html")


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
    found = publish(run).summary
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
        names = names_in(RunDirectory(folder).root)
        there = [name for name in names if name.endswith(ending)]
        new = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%S}{ending}"
        folder = f"{folder}/{there[0] if there else new}"
    return f"{folder}/{slice_name}" if slice_name else folder


def _document(
    state: State, reasons: Sequence[str], runs: Sequence[tuple[str, str, Sequence[str]]]
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
        headline=pages.Callout(state, f"{first}{more}", WORDS[state].role),
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
    in_log: bool = True,
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
        in_log: Whether the log gets the ending with its page, which Kubeflow's submitter reads.

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
    told = RunEnding.of(state, reasons, folder)
    if in_log:
        print(told.line, flush=True)
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
    runs = [RunDirectory(place) for place in places]
    if all(_is_of(run, engine_run) for run in runs):
        named = _noted(folder, contents, told.metadata) | _results(state, runs)
        page = read_at_most(str(named.get("verdicts_report", named["report"]).place))
    else:  # the run of another keeps its files as they are
        page, named = contents["report"], {"metrics": StepOutput(metadata={"state": state})}
        for name, content in contents.items():
            metadata = lineage.artifact_metadata(name) | told.metadata
            named[name] = StepOutput(metadata=metadata, content=content)
    if in_log:  # again, now with the page: of several endings in a log the last one counts
        print(RunEnding.of(state, reasons, folder, page).line, flush=True)
    return Outputs(value=state, named=named)


def _noted(
    folder: str, contents: Mapping[str, bytes], told: dict[str, str]
) -> dict[str, StepOutput]:
    """Writes how a run ended into its folder, and a page where it has no report."""
    run = RunDirectory(folder)
    files = {"ending": run.root / lineage.ENDING, "report": run.root / "report.html"}
    write_atomically(files["ending"], contents["ending"])
    if run.exists():
        lineage.note_ending(run)
    else:
        write_atomically(files["report"], contents["report"])
    return {name: StepOutput.of_file(name, str(path), more=told) for name, path in files.items()}


def _results(state: str, runs: Sequence[RunDirectory]) -> dict[str, StepOutput]:
    """Returns the results of runs as outputs: a step that fails by its verdict leaves none."""
    words: dict[str, str] = {"state": state}
    numbers, named = list[tuple[str, float]](), dict[str, StepOutput]()
    for run in filter(RunDirectory.exists, runs):
        of_slice = f"{run.root.name} " if len(runs) > 1 else ""
        found = list(read_json(run.root / lineage.METRICS).items())
        if (run.root / RunFile.VERDICTS).exists():
            judged = read_verdicts(run)
            found += ratios(judged)
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
        name, state = read.info.suite_name, told.outcome.lacking(lacking).state
        lines = told.outcome.in_order(filter(None, [told.answer]), lacking)
        lines = lines if lacking else (*lines, "every point is complete")
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
        found.outcome.in_order([says, *([known.said] if known else [])], lacking),
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
