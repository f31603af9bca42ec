"""Answers about a run, a row each, and the state of a run, which every medium reads.

A new answer is a package of `analysis`, a row here, and a page of the documentation.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from orbax_bench_core.analysis import async_study, recovery, soak
from orbax_bench_core.analysis.best import Best, best_line
from orbax_bench_core.analysis.verdicts import VerdictReport, headline, judge_point
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel, names_in, read_json
from orbax_bench_core.records import PointRecords, Run, RunDirectory, RunFile, RunInfo
from orbax_bench_core.sweep import Pair, SweepEntry

Found = TypeVar("Found", bound=ResultModel)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer(Generic[Found]):
    """One question that a run may answer."""

    name: str  # of its files: its data are `<name>.json`
    model: type[Found]  # of its data
    headline: Callable[[Found], str]  # what was found, in a sentence
    page: str  # file that shows it to people
    decides: bool = True  # whether its outcome is that of the run

    @property
    def file(self) -> str:
        """Name of its data in a run directory."""
        return f"{self.name}.json"

    def read(self, run: RunDirectory) -> Found | None:
        """Returns its data; None if a run has none.

        Raises:
            UserError: The file is damaged, or of another version.
        """
        return run.read_result(self.file, self.model)


ANSWERS: Final[tuple[Answer[Any], ...]] = (
    Answer(name="verdicts", model=VerdictReport, headline=headline, page="verdicts.html"),
    Answer(
        name="soak",
        model=soak.Soak,
        headline=lambda found: soak.headline(found).text,
        page="soak.html",
    ),
    Answer(
        name="recovery",
        model=recovery.Recovery,
        headline=lambda found: recovery.headline(found).text,
        page="recovery.html",
    ),
    Answer(
        name="async_study",
        model=async_study.AsyncStudy,
        headline=lambda found: async_study.headline(found).text,
        page="async_study.html",
    ),
    Answer(name="best", model=Best, headline=best_line, page=RunFile.REPORT, decides=False),
)
"""Every answer; of those that a run has the first one is its state."""


class RunState(NamedTuple):
    """How a run is, as its directory says."""

    outcome: Outcome  # its word is the verdict, or how far the run came
    answer: str  # what it found, in a sentence; empty if it found nothing
    page: str  # name of the page that says it
    pages: tuple[str, ...]  # names of all pages that it has
    unread: tuple[str, ...]  # what could not be read, a line each


def state_of(run: RunDirectory, info: RunInfo) -> RunState:
    """Returns the state of a run: the first of its answers, or how far it came."""
    names, unread = set(names_in(run.root)), list[str]()
    outcome, page = _unanswered(run, info), str(RunFile.REPORT)
    answer = "no repeat has passed" if outcome.word == "failed" else ""
    for each in ANSWERS:
        try:
            found = each.read(run) if each.file in names else None
        except UserError as failure:
            unread.append(str(failure))
            continue
        if found is not None:
            if each.decides:
                outcome = dataclasses.replace(
                    found.outcome, word=found.outcome.word or outcome.word
                )
            answer, page = each.headline(found), each.page
            break
    pages = tuple(each.page for each in ANSWERS if each.page in names)
    return RunState(outcome, answer, page, pages, tuple(unread))


def _unanswered(run: RunDirectory, info: RunInfo) -> Outcome:
    """Returns the outcome of a run of which nothing was concluded."""
    if info.status == "complete":
        return Outcome(word="not judged" if info.paired else info.status)
    with contextlib.suppress(UserError, OSError, ValueError):
        if info.status == "incomplete" and read_json(run.root / RunFile.METRICS) == {}:
            return Outcome(word="failed", incomplete=True)
    return Outcome(word=info.status, incomplete=True)


def unfinished(run: Run) -> list[SweepEntry]:
    """Returns the entries of a run that lack repeats, or have no verdict yet."""
    return [point.entry for point in run.points() if not is_finished(point, run.info)]


def is_finished(point: PointRecords, info: RunInfo) -> bool:
    """Returns whether an entry has all its repeats, or its verdict.

    A pair of which both arms failed has none, whatever look was its last.
    """
    measured = [repeat for repeat in point.repeats if not repeat.warmup]
    if isinstance(point.entry, Pair):
        verdict = judge_point(point.entry, measured, info)
        return verdict.settled and not verdict.failed
    return sum(repeat.finished for repeat in measured) >= info.num_repeats
