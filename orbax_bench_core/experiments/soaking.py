"""Soaks and recovery drills: what of a suite is measured for them, and what is concluded."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orbax_bench_core.analysis import recovery as drills
from orbax_bench_core.analysis import soak as soaks
from orbax_bench_core.analysis.verdicts import judge_run
from orbax_bench_core.answers import RECOVERY, SOAK
from orbax_bench_core.config import LoadedSuite, Suite
from orbax_bench_core.errors import UserError, check_amounts, shown
from orbax_bench_core.execute import DEFAULTS, Kill, RunSettings, Say, Session, run_until, silent
from orbax_bench_core.experiments import experiment
from orbax_bench_core.experiments.comparison import compare_arms
from orbax_bench_core.publishing import publish_verdicts
from orbax_bench_core.records import Repeat, RunDirectory
from orbax_bench_core.sweep import SweepPoint, sides

_HOUR_S: Final = 3600.0
_MOST: Final = 10_000_000
"""Saves of one process."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoakGoal:
    """End of a soak, which one process has to reach: the next one starts with fresh memory."""

    saves: int | None = None  # saves of one process; None if hours count
    hours: float | None = None  # hours of measured repeats of one process, or None

    def __post_init__(self) -> None:
        if (self.saves is None) == (self.hours is None):
            raise UserError(
                f"give --saves N or --hours T, one of them: --saves {soaks.FEWEST} takes the "
                "fewest saves that a verdict rests on"
            )
        if self.saves is not None and self.saves < soaks.FEWEST:
            raise UserError(
                f"--saves {self.saves} gives no verdict: of fewer than {soaks.FEWEST} saves a heap "
                f"that is still warming up cannot be told from a leak; give {soaks.FEWEST} or more"
            )
        if self.saves is not None and self.saves > _MOST:
            raise UserError(f"--saves {shown(self.saves)} would take years: give {_MOST:,} or less")
        if self.hours is not None and not 0 < self.hours < math.inf:
            raise UserError(f"--hours takes a number above 0, got {self.hours:g}")

    def reached(self, repeats: list[Repeat]) -> bool:
        """Returns whether the repeats of one point are enough, on every host.

        Args:
            repeats: The repeats so far, in the order of measurement; at least one.

        Raises:
            UserError: The benchmark measures neither `save` nor `save_blocking`, so that no number
                of repeats would be enough.
        """
        # A repeat that failed ends a soak: whatever made it fail is what was looked for.
        last = repeats[-1]
        if last.status != "passed":
            return True
        for host in range(last.num_hosts):
            life = soaks.longest(soaks.lives_of(repeats, host))
            if life is None:
                raise UserError(
                    f"{last.series.name} measures no save: a soak needs a benchmark that measures "
                    "the operation `save` or `save_blocking`"
                )
            if self.saves is not None and len(life.values) < self.saves:
                return False
            if self.hours is not None and (
                sum(record.duration_s for record in life.records) < self.hours * _HOUR_S
            ):
                return False
        return True


@dataclasses.dataclass(kw_only=True)
class Soaking(experiment.Experiment):
    """Saves of one process until every point has reached the goal."""

    again: ClassVar = "soak"
    changes: ClassVar = {"soak": True}
    goal: SoakGoal = SoakGoal(saves=soaks.FEWEST)
    limit_mib: float = soaks.LIMIT_MIB  # growth of memory per save that is allowed

    def overrides(self, suite: Suite) -> list[str]:  # noqa: ARG002 - any
        """Has as many repeats as there may be: one save each, if not more."""
        return [] if self.goal.saves is None else [f"num_repeats={self.goal.saves}"]

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Refuses arms, and ways of the allocator that look like a leak.

        Raises:
            SuiteError: The suite has arms.
            UserError: Its `host_memory` is not `reused`.
        """
        if suite.suite.arms is not None:
            raise UserError(
                suite.source.problem(
                    "a soak watches one process: leave out `arms`, and soak each side of it",
                    ("arms",),
                )
            )
        memory = suite.suite.execution.host_memory
        if memory != ("reused",):
            raise UserError(
                suite.source.problem(
                    f"a soak needs `host_memory: reused`, got {', '.join(memory)}: other ways of "
                    "the allocator fragment the heap for hundreds of saves, which looks like a "
                    "leak of 0.3 MiB a save",
                    ("execution", "host_memory"),
                )
            )
        return suite

    def measure(self, session: Session, *, lock: bool) -> None:
        """Makes saves until every point has reached the goal."""
        repeats: dict[str, list[Repeat]] = {}

        def ended(point: SweepPoint, repeat: Repeat) -> bool:
            made = repeats.setdefault(point.id, [])
            made.append(repeat)
            return self.goal.reached(made)

        with experiment.measuring(session, lock=lock) as watched:
            made = run_until(watched, ended)
            # A run is complete when it has all its repeats: how many these are is known only now.
            info = session.directory.read_info()
            session.directory.write_info(info.model_copy(update={"num_repeats": made}))

    def conclude(self, run: RunDirectory) -> experiment.Conclusion:
        """Judges what the longest process keeps of each save."""
        return experiment.answered(run, SOAK, limit_mib=self.limit_mib)


def soak(
    suite: str,
    directory: str,
    *,
    saves: int | None = None,
    hours: float | None = None,
    limit_mib: float = soaks.LIMIT_MIB,
    overrides: Sequence[str] = (),
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> soaks.Soak:
    """Soaks a suite, and writes all reports; as `orbax-bench soak`.

    Its `table()` has a row per level and process:

        orbax_bench_core.soak("examples/soak.yaml", "out", saves=200).table()

    Args:
        suite: Path of the suite file, local or gs://.
        directory: The run directory, local or gs://.
        saves: Saves of one process.
        hours: Hours of one process, instead.
        limit_mib: Growth of memory per save that is allowed, in MiB.
        overrides: Keys of the suite to change, each `key=value`, as `--override` takes them.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Raises:
        UserError: The suite is invalid or cannot be soaked, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    check_amounts(limit_mib=limit_mib)
    found = experiment.perform(
        Soaking(goal=SoakGoal(saves=saves, hours=hours), limit_mib=limit_mib),
        suite,
        directory,
        overrides=overrides,
        settings=settings,
        say=say,
    )
    assert isinstance(found.answer, soaks.Soak)
    return found.answer


@dataclasses.dataclass(kw_only=True)
class Drills(experiment.Experiment):
    """Repeats that are killed once each; of a suite with arms the whole recovery decides."""

    again: ClassVar = "recovery"
    changes: ClassVar = {"drill": True}
    # seconds of each phase beyond what this machine can show
    added: Mapping[drills.PhaseName, float] = dataclasses.field(default_factory=dict)

    def overrides(self, suite: Suite) -> list[str]:
        """Has the whole recovery decide, unless a suite with arms names `gate.primary` itself."""
        return [] if suite.arms is None or suite.gate.names_primary else ["gate.primary=[recovery]"]

    def prepared(self, session: Session) -> Session:
        """Refuses what cannot be drilled."""
        for entry in session.entries:
            for point in sides(entry).values():
                if point.is_traced:
                    raise UserError(
                        f"{point.name} has `enable_trace: true`: what is traced is a warm-up, and "
                        "a drill has none; leave it out, and trace the suite by `orbax-bench run`"
                    )
                Kill.of(point, seed="").check(point, session.settings.host)
        return session

    def measure(self, session: Session, *, lock: bool) -> None:
        """Kills every repeat once."""
        if session.pairs:
            self.verdicts = compare_arms(session, lock=lock)
        else:
            experiment.measure_points(session, limits=False, lock=lock)

    def conclude(self, run: RunDirectory) -> experiment.Conclusion:
        """Shows how every repeat came back."""
        if self.verdicts is not None:
            publish_verdicts(run, self.verdicts)
        found = experiment.answered(run, RECOVERY, added=self.added)
        verdicts = self.verdicts
        if verdicts is None and found.answer.verdicts:
            verdicts = judge_run(run)
        if verdicts is None:
            return found
        outcome = verdicts.outcome.lacking(found.answer.outcome.incomplete)
        return dataclasses.replace(found, outcome=outcome, verdicts=verdicts)


def recovery(
    suite: str,
    directory: str,
    *,
    overrides: Sequence[str] = (),
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> drills.Recovery:
    """Drills a suite, and writes all reports; as `orbax-bench recovery`.

    Its `table()` has a row per point or arm, and phase:

        orbax_bench_core.recovery("examples/recovery.yaml", "out").table()

    Args:
        suite: Path of the suite file, local or gs://, with the benchmark `training_job`.
        directory: The run directory.
        overrides: Keys of the suite to change, each `key=value`, as `--override` takes them.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Raises:
        UserError: The suite is invalid or has no trainer, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    found = experiment.perform(
        Drills(), suite, directory, overrides=overrides, settings=settings, say=say
    )
    assert isinstance(found.answer, drills.Recovery)
    return found.answer
