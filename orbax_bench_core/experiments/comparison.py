"""Comparison: blocks of both arms, judged until every pair has its verdict."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.acceptance import standing, with_acceptance
from orbax_bench_core.analysis.verdicts import (
    Evidence,
    GoingOn,
    PointVerdict,
    VerdictReport,
    Why,
    evidence_of,
    going_on,
    judge_run,
    needs_more,
    report,
    verdicts_document,
    version_differences,
    write_verdicts,
)
from orbax_bench_core.config import (
    PER_ARM,
    GateConfig,
    LoadedSuite,
    load_suite,
    override_flags,
    parse_suite,
    with_keys,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, Event, RunSettings, Say, Session, run_pairs, silent
from orbax_bench_core.experiments.experiment import Conclusion, Experiment, measuring, perform
from orbax_bench_core.pages import count
from orbax_bench_core.publishing import publish_verdicts
from orbax_bench_core.reasons import NO_REASON, Reason, Reasons, because
from orbax_bench_core.records import Run, RunDirectory, RunInfo
from orbax_bench_core.sweep import Pair, PairDesign, lives_of

if TYPE_CHECKING:
    from orbax_bench_core.analysis.noise import Passport

_MOST_TOLD: Final = 5
"""Points of which `--more` says by name what becomes of them."""

_NOT_ADDED: Final[Mapping[Why, str]] = {
    "decided": "it has its verdict",
    "unfinished": "it is not at its end, and goes on without that",
    "used_up": "all looks are used up, and a new comparison takes another output directory",
    "no_use": "more operations do not give it a verdict",
}
"""Why `--more` adds nothing to a point."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairJudged(Event):
    """A pair has been looked at: what its blocks say so far."""

    verdict: PointVerdict


def compare_arms(session: Session, *, lock: bool = True) -> VerdictReport:
    """Runs blocks of both arms until each pair has a verdict or the last look is made.

    Args:
        session: The measurement; its entries are pairs.
        lock: Whether the measuring lock of the machine is held meanwhile.

    Returns:
        The verdicts of the session's pairs, in their order. After each look at a whole run, those
        so far are in `verdicts.json`, for who watches it.

    Raises:
        UserError: Another command measures here, or the machine cannot be locked.
    """
    info, pairs = session.info, session.pairs
    found: dict[str, Evidence] = {}
    notes: list[Reason] = []
    starts: dict[str, list[float]] = {pair.id: [] for pair in pairs}

    def next_look(pair: Pair, seconds: Sequence[float]) -> tuple[PairDesign, int] | None:
        starts[pair.id] += seconds
        measured = session.directory.read_point(pair)
        switching = _switching(starts[pair.id])
        found[pair.id] = evidence_of(pair, measured.repeats, info, switching)
        notes.extend(version_differences(measured.records))
        so_far = report(info, found.values(), notes)
        if session.whole:  # several steps would overwrite each other
            write_verdicts(session.directory, so_far)
        verdict = next(point for point in so_far.points if point.point_id == pair.id)
        if found[pair.id].carries_over:
            verdict = _with_lives(verdict, info.gate)
        session.watch(PairJudged(verdict=verdict))
        if verdict.design is None or verdict.next_look is None or not needs_more(verdict):
            return None
        return verdict.design, verdict.next_look

    with measuring(session, lock=lock) as watched:
        run_pairs(watched, next_look)
    return report(info, [found[pair.id] for pair in pairs], notes, session.directory.strays)


@dataclasses.dataclass(kw_only=True)
class Comparison(Experiment):
    """Blocks of both arms of every pair until its verdict.

    With `more`, pairs that ended INCONCLUSIVE go on with what is measured, to a look that is
    reserved for that (see `gate.looks`): the next one, or the first that adds so many operations
    per arm. What is granted is noted in `run.json` first, so that an interrupted one goes on to it.
    """

    again: ClassVar = "compare"
    passport: Passport | None = None  # the noise of this machine, which tells how long it takes
    more: int | None = None  # operations per arm to add, 0 for the next look; None for none
    _told: list[str] = dataclasses.field(default_factory=list, init=False)

    def check_place(self, directory: str) -> None:
        """Refuses to go on where nothing is measured.

        Raises:
            UserError: `--more` was given, and the directory has no measured pair.
        """
        if self.more is None:
            return
        run = RunDirectory(directory)
        if not (run.exists() and any(map(run.has_repeats, run.read_info().expansion.pairs))):
            raise UserError(
                f"--more: {directory} has no comparison to go on with; leave --more out to begin "
                "one"
            )

    def prepared(self, session: Session) -> Session:
        """Lets pairs without a verdict go on, if it is asked for.

        Pairs that have a verdict, or whose next looks would not bring one, get no more operations;
        lines of `announced` say which and why.
        """
        if self.more is None:
            return session
        with session.owned():
            info = session.directory.read_info()
            granted: dict[str, int] = {}
            for point in judge_run(session.directory).points:
                found = going_on(point, info.gate)
                if found.why in ("more", "unlikely"):
                    used, until = _reach(point, info.gate, self.more)
                    granted[point.point_id] = until
                    self._told.append(f"{point.point}: {_said(used, until, found)}")
                else:
                    why = _NOT_ADDED[found.why]
                    self._told.append(f"{point.point}: {point.word}, nothing is added: {why}")
            info = info.model_copy(update={"more": {**info.more, **granted}})
            session.directory.write_info(info)
        return dataclasses.replace(session, info=info)

    def announced(self, session: Session) -> Iterable[str]:
        """Says what will be compared, and about how many minutes that takes.

        A passport of noise gives minutes for these points; without one, the usual minutes are given
        for those that are known.
        """
        from orbax_bench_core.analysis import noise

        info, pairs = session.info, session.pairs
        looks = (info.designs[pair.id].looks(info.gate)[-1] for pair in pairs)
        most = max([*looks, *info.more.values()], default=0)
        sides, points = f"{info.candidate} against {info.baseline}", count(len(pairs), "point")
        yield f"{info.suite_name}: {sides}, {points}, up to {most} operations per side"
        if self._told:
            yield from (f"  {line}" for line in self._told[:_MOST_TOLD])
            if len(self._told) > _MOST_TOLD:
                yield f"  and {count(len(self._told) - _MOST_TOLD, 'other point')}"
            return
        if all(pair.identical for pair in pairs):
            yield "  Both measure the same: this judges the machine and the gate, and no change"
        if self.passport is not None:
            yield noise.forecast(pairs, info.gate, self.passport, str(session.directory.root))
        elif (usual := noise.usual_minutes(pairs, info.gate, info.designs)) is not None:
            yield (
                f"About {usual[0]:.0f} to {usual[1]:.0f} minutes with some MiB; "
                "`orbax-bench calibrate` learns it for this place"
            )

    def measure(self, session: Session, *, lock: bool) -> None:
        """Measures both arms until every pair has its verdict."""
        self.verdicts = compare_arms(session, lock=lock)

    def conclude(self, run: RunDirectory) -> Conclusion:
        """Writes the reports, and shows the verdicts."""
        from orbax_bench_core.publishing import publish

        assert self.verdicts is not None
        verdicts = self.verdicts = with_acceptance(self.verdicts, str(run.root))
        publish(run)
        page = publish_verdicts(run, verdicts)
        self.show(self.told(verdicts_document(verdicts, str(run.root)), run))
        if known := standing(verdicts, str(run.root)):
            self.show(known.said)
        self.show(f"Page: {page}")
        return Conclusion(outcome=verdicts.outcome, verdicts=verdicts)

    def told(self, document: pages.Document, run: RunDirectory) -> pages.Document:  # noqa: ARG002
        """Returns the document to show of the verdicts of a run; a subclass adds to it."""
        return document


def _reach(point: PointVerdict, gate: GateConfig, more: int) -> tuple[int, int]:
    """Returns the operations per arm of a point, and those at the look to which it goes on."""
    assert point.design is not None
    used = point.blocks * PER_ARM * point.design.operations_per_life
    left = [look for look in point.design.looks_with_more(gate) if look > used]
    return used, next((look for look in left if look >= used + more), left[-1])


def _said(used: int, until: int, found: GoingOn) -> str:
    said = f"goes on from {used} to {until} operations per arm"
    if found.why == "unlikely":
        return f"{said}; at its noise so far no number that may be added would probably do"
    if found.until > until:
        return f"{said}; a verdict probably takes {found.until}, which is {found.flag}"
    return said


def _with_lives(verdict: PointVerdict, gate: GateConfig) -> PointVerdict:
    """Returns the verdict on a point that goes on with processes of its own for each arm."""
    design = lives_of(gate, after=verdict.blocks)
    return verdict.model_copy(
        update={
            "design": design,
            "settled": False,
            "next_look": design.looks(gate)[0],
            "reason": verdict.reason + because("own_processes_follow"),
        }
    )


def _switching(starts: Sequence[float]) -> Reasons:
    """Returns that arms could not be held at the same time, and what that cost; else nothing."""
    took = because("took_turns", starts=len(starts), seconds=sum(starts))
    return took if starts else NO_REASON


def ab(
    suite: str,
    directory: str,
    *,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
    more: int | None = None,
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Run:
    """Compares two arms of a suite until every point has a verdict, and writes all reports.

    As `orbax-bench ab`. `orbax_bench_core.read_verdicts` gives what was found:

        arms = {"candidate": {"options": {"use_ocdbt": False}}}
        run = orbax_bench_core.ab("suite.yaml", "out", arms=arms)
        orbax_bench_core.read_verdicts(run).word

    Args:
        suite: Path of the suite file, local or gs://.
        directory: The run directory, local or gs://.
        arms: The `arms` block of a suite that has none; `{}` compares it with itself.
        overrides: Keys of the suite to change, each `key=value`, as `--override` takes them.
        more: Lets points without a verdict go on in the same directory, as `--more` does: by so
            many operations per arm or, with 0, to the next look.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Returns:
        The run, read from its records.

    Raises:
        UserError: The suite is invalid, has no arms or other ones, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    loaded = _with_arms(load_suite(suite, overrides), arms)
    perform(Comparison(more=more), loaded, directory, settings=settings, say=say)
    return Run(RunDirectory(directory))


def _with_arms(loaded: LoadedSuite, arms: Mapping[str, Mapping[str, Any]] | None) -> LoadedSuite:
    if loaded.suite.arms is not None:
        if arms is not None:
            raise UserError(
                loaded.source.problem("the suite has arms of its own: leave out `arms`", ("arms",))
            )
        return loaded
    if arms is None:
        raise UserError(
            loaded.source.problem(
                "nothing to compare: give the suite an `arms` block, or pass one, such as "
                "arms={'candidate': {'options': {'use_ocdbt': False}}}; arms={} compares the "
                "suite with itself",
                (),
            )
        )
    file = loaded.source.file
    flags = (*override_flags(loaded.text), "--override", f"arms={json.dumps(arms, default=str)}")
    found = parse_suite(with_keys(loaded.text, {"arms": arms}, file), file)
    return RunInfo.made_by(("ab", file, *flags), found)
