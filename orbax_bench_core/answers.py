"""Answers about a run, a row each, and the state of a run, which every medium reads.

A new answer is a package of `analysis`, a row here, and a page of the documentation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from orbax_bench_core import pages
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Outcome, exit_code, worst
from orbax_bench_core.files import ResultModel, names_in, read_json
from orbax_bench_core.records import PointRecords, Run, RunDirectory, RunFile, RunInfo
from orbax_bench_core.sweep import Pair, SweepEntry

if TYPE_CHECKING:
    from orbax_bench_core.analysis.async_study import AsyncStudy
    from orbax_bench_core.analysis.best import Best
    from orbax_bench_core.analysis.recovery import Recovery
    from orbax_bench_core.analysis.releases import ReleaseSearch
    from orbax_bench_core.analysis.soak import Soak
    from orbax_bench_core.analysis.verdicts import VerdictReport

Found = TypeVar("Found", bound=ResultModel)


class Parts(NamedTuple, Generic[Found]):
    """What an answer is made of; its package is imported by the runs that have such an answer."""

    model: type[Found]  # of the data
    document: Callable[[Found, str], pages.Document]  # shows them; of a directory
    headline: Callable[[Found], pages.Callout]  # what was found, in a sentence
    # makes the data from the records of a run, with options of its own; None if it takes several
    answer: Callable[..., Found] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer(Generic[Found]):
    """One question that a run may answer, and where its data and its view lie."""

    name: str  # of its files: `<name>.json` has the data, `<name>.html` and `<name>.md` show them
    shows: str  # what these show, for a list of files
    load: Callable[[], Parts[Found]]  # imports its package
    more: tuple[str, ...] = ()  # further files and folders
    # whether the report of the run has all of it, rather than pages; it decides nothing then
    in_report: bool = False
    # whether data of an earlier version are made again, from the records
    remade: bool = False
    linked: bool = True  # whether the report says its headline, and where its page is

    @functools.cached_property
    def parts(self) -> Parts[Found]:
        """Its model, its view, and how it is answered."""
        return self.load()

    @property
    def file(self) -> str:
        """Name of its data in a run directory."""
        return f"{self.name}.json"

    @property
    def page(self) -> str:
        """Name of the page that shows it."""
        return RunFile.REPORT.value if self.in_report else f"{self.name}.html"

    @property
    def pages(self) -> tuple[str, ...]:
        """Names of all that is made of its data."""
        return () if self.in_report else (f"{self.name}.md", self.page, *self.more)

    def read(self, run: RunDirectory) -> Found | None:
        """Returns its data; None if a run has none.

        Raises:
            UserError: The file is damaged, or of another version.
        """
        with contextlib.suppress(OSError, ValueError):
            if self.remade and read_json(run.root / self.file).get("schema_version") == 1:
                assert self.parts.answer is not None
                return self.parts.answer(Run(run))
        return run.read_result(self.file, self.parts.model)


def _verdicts() -> Parts[VerdictReport]:
    from orbax_bench_core.analysis import verdicts as room

    return Parts(
        room.VerdictReport,
        room.verdicts_document,
        room.headline,
        lambda run: room.judge_run(run.directory),
    )


def _soak() -> Parts[Soak]:
    from orbax_bench_core.analysis import soak as room

    return Parts(room.Soak, room.soak_document, room.headline, room.soak_of)


def _recovery() -> Parts[Recovery]:
    from orbax_bench_core.analysis import recovery as room

    return Parts(room.Recovery, room.recovery_document, room.headline, room.recovery_of)


def _async_study() -> Parts[AsyncStudy]:
    from orbax_bench_core.analysis import async_study as room

    return Parts(
        room.AsyncStudy,
        lambda found, _: room.study_document(found),
        room.headline,
        lambda run: room.async_study(run, room.ParameterCounter(run.info.suite_file)),
    )


def _bisect() -> Parts[ReleaseSearch]:
    from orbax_bench_core.analysis import releases as room

    return Parts(room.ReleaseSearch, room.search_document, room.headline)


def _best() -> Parts[Best]:
    from orbax_bench_core.analysis import best as room

    return Parts(
        room.Best,
        room.best_document,
        lambda found: pages.Callout("", room.best_line(found)),
        lambda run, **options: room.best(str(run.directory.root), **options),
    )


VERDICTS: Final = Answer(
    name="verdicts",
    shows="the verdicts of its comparison",
    load=_verdicts,
    more=("junit.xml",),
    linked=False,  # a report is written before its run is judged
)
SOAK: Final = Answer(name="soak", shows="growth of memory over many saves", load=_soak)
RECOVERY: Final = Answer(name="recovery", shows="recovery from kills", load=_recovery)
ASYNC_STUDY: Final = Answer(
    name="async_study", shows="saves in the background next to saves that block", load=_async_study
)
BISECT: Final = Answer(name="bisect", shows="the first bad release", load=_bisect)
BEST: Final = Answer(
    name="best", shows="the choice of options", load=_best, in_report=True, remade=True
)
ANSWERS: Final[tuple[Answer[Any], ...]] = (VERDICTS, SOAK, RECOVERY, ASYNC_STUDY, BEST)
"""All answers about a run. A search of releases is about several, and lies in the folder above."""


class RunState(NamedTuple):
    """How a run is, as its directory says."""

    outcome: Outcome  # its word is the verdict, or how far the run came
    answer: str  # what it found, in a sentence; empty if it found nothing
    page: str  # name of the page that says it
    pages: tuple[str, ...]  # names of all pages that it has
    unread: tuple[str, ...]  # what could not be read, a line each


def state_of(run: RunDirectory, info: RunInfo) -> RunState:
    """Returns the state of a run: the worst of its answers, or how far it came.

    Of several that are as bad, the first of `ANSWERS` counts, so that a recovery with a lost drill
    is told rather than the PASS of its times. An answer in the report counts if there is no other.
    """
    names, unread = set(names_in(run.root)), list[str]()
    own, told = _unanswered(run, info), list[tuple[Outcome, Answer[Any], Any]]()
    for each in ANSWERS:
        if each.file not in names or (each.in_report and told):
            continue
        try:
            found: Any = each.read(run)
        except UserError as failure:
            unread.append(str(failure))
            continue
        if found is not None:
            outcome = own if each.in_report else found.outcome
            outcome = dataclasses.replace(outcome, word=outcome.word or own.word)
            told.append((outcome, each, found))
    pages = tuple(each.page for each in ANSWERS if each.page in names)
    code = worst(exit_code(outcome) for outcome, _, _ in told)
    for outcome, each, found in told:
        if exit_code(outcome) == code:
            said = each.parts.headline(found).text
            return RunState(outcome, said, each.page, pages, tuple(unread))
    nothing = "no repeat has passed" if own.word == "failed" else ""
    return RunState(own, nothing, RunFile.REPORT.value, pages, tuple(unread))


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
        from orbax_bench_core.analysis.verdicts import judge_point

        verdict = judge_point(point.entry, measured, info)
        return verdict.settled and not verdict.failed
    return sum(repeat.finished for repeat in measured) >= info.num_repeats
