"""Comparison: blocks of both arms, judged until every pair has its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orbax_bench_core.analysis.verdicts import (
    Evidence,
    PointVerdict,
    VerdictReport,
    evidence_of,
    needs_more,
    report,
    verdicts_document,
    version_differences,
    write_verdicts,
)
from orbax_bench_core.config import GateConfig, LoadedSuite, load_suite, parse_suite, with_keys
from orbax_bench_core.document import count
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, Event, RunSettings, Say, Session, run_pairs, silent
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps.experiments import Conclusion, Experiment, measuring, perform
from orbax_bench_core.steps.reporting import publish_verdicts
from orbax_bench_core.sweep import Pair, PairDesign, lives_of

if TYPE_CHECKING:
    from orbax_bench_core.analysis.noise import Passport


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairJudged(Event):
    """A pair has been looked at: what its blocks say so far."""

    verdict: PointVerdict


def compare_arms(session: Session, *, lock: bool = True) -> VerdictReport:
    """Runs blocks of both arms until each pair has a verdict or the last look is made."""
    # After each look at a whole run, the verdicts so far are in `verdicts.json`.
    info, pairs = session.info, session.pairs
    found: dict[str, Evidence] = {}
    notes: list[str] = []
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
    """Blocks of both arms of every pair until its verdict."""

    again: ClassVar = "compare"
    passport: Passport | None = None  # the noise of this machine, which tells how long it takes

    def announced(self, session: Session) -> Iterable[str]:
        """Says what will be compared, and about how many minutes that takes."""
        from orbax_bench_core.analysis import noise

        info, pairs = session.info, session.pairs
        most = max((info.designs[pair.id].looks(info.gate)[-1] for pair in pairs), default=0)
        yield f"{info.suite_name}: {count(len(pairs), 'point')}, up to {most} operations per arm"
        yield f"  baseline:  {info.baseline}"
        yield f"  candidate: {info.candidate}"
        if all(pair.identical for pair in pairs):
            yield "  Both measure the same: this judges the machine and the gate, and no change"
        if self.passport is not None:
            yield noise.forecast(pairs, info.gate, self.passport, str(session.directory.root))
        elif (usual := noise.usual_minutes(pairs, info.gate, info.designs)) is not None:
            yield (
                f"About {usual[0]:.0f} to {usual[1]:.0f} minutes for checkpoints of some MiB; "
                "`orbax-bench calibrate` learns what it takes here"
            )

    def measure(self, session: Session, *, lock: bool) -> None:
        """Measures both arms until every pair has its verdict."""
        self.verdicts = compare_arms(session, lock=lock)

    def conclude(self, run: RunDirectory) -> Conclusion:
        """Writes the reports, and shows the verdicts."""
        from orbax_bench_core.steps.reporting import publish

        verdicts = self.verdicts
        assert verdicts is not None
        publish(run)
        page = publish_verdicts(run, verdicts)
        self.show(verdicts_document(verdicts))
        self.show(f"Report: {page}")
        return Conclusion(outcome=verdicts.outcome, verdicts=verdicts)


def _with_lives(verdict: PointVerdict, gate: GateConfig) -> PointVerdict:
    """Returns the verdict on a point that goes on with processes of its own for each arm."""
    design = lives_of(gate, after=verdict.blocks)
    return verdict.model_copy(
        update={
            "design": design,
            "settled": False,
            "next_look": design.looks(gate)[0],
            "reason": f"{verdict.reason}. The comparison goes on with these",
        }
    )


def _switching(starts: Sequence[float]) -> str:
    if not starts:
        return ""
    return (
        f"The arms could not be held at the same time and took turns: workers were started "
        f"{len(starts)} more times, which took {sum(starts):.0f} s outside the operations."
    )


def ab(
    suite: str,
    directory: str,
    *,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
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
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Returns:
        The run, read from its records.

    Raises:
        UserError: The suite is invalid, has no arms or other ones, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    loaded = _with_arms(load_suite(suite, overrides), arms)
    perform(Comparison(), loaded, directory, settings=settings, say=say)
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
    text = with_keys(loaded.text, {"arms": arms}, loaded.source.file)
    return parse_suite(text, loaded.source.file)
