"""Recovery: every repeat is killed once while it trains, and goes on in new processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from orbax_bench_core.analysis.recovery import PhaseName, Recovery, headline, recovery_document
from orbax_bench_core.analysis.verdicts import judge_run
from orbax_bench_core.config import Suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, Kill, RunSettings, Say, Session, silent
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import experiments
from orbax_bench_core.steps.comparison import compare_arms
from orbax_bench_core.steps.conclusions import publish_recovery, publish_verdicts
from orbax_bench_core.sweep import sides


@dataclasses.dataclass(kw_only=True)
class Drills(experiments.Experiment):
    """Repeats that are killed once each; of a suite with arms the whole recovery decides."""

    again: ClassVar = "recovery"
    changes: ClassVar = {"drill": True}
    # seconds of each phase beyond what this machine can show
    added: Mapping[PhaseName, float] = dataclasses.field(default_factory=dict)

    def overrides(self, suite: Suite) -> list[str]:
        """Has the whole recovery decide, unless a suite with arms names `gate.primary` itself."""
        return [] if suite.arms is None or suite.gate.names_primary else ["gate.primary=[recovery]"]

    def check(self, session: Session) -> None:
        """Refuses what cannot be drilled."""
        for entry in session.entries:
            for point in sides(entry).values():
                if point.is_traced:
                    raise UserError(
                        f"{point.name} has `enable_trace: true`: what is traced is a warm-up, and "
                        "a drill has none; leave it out, and trace the suite by `orbax-bench run`"
                    )
                Kill.of(point, seed="").check(point, session.settings.host)

    def measure(self, session: Session, *, lock: bool) -> None:
        """Kills every repeat once."""
        if session.pairs:
            self.verdicts = compare_arms(session, lock=lock)
        else:
            experiments.measure_points(session, limits=False, lock=lock)

    def conclude(self, run: RunDirectory) -> experiments.Conclusion:
        """Shows how every repeat came back."""
        if self.verdicts is not None:
            publish_verdicts(run, self.verdicts)
        found, summary = experiments.answered(run, lambda: publish_recovery(run, self.added))
        verdicts = self.verdicts
        if verdicts is None and found.verdicts:
            verdicts = judge_run(run)
        return experiments.Conclusion(
            outcomes=(found.outcome, (verdicts or summary).outcome),
            verdicts=verdicts,
            lines=(headline(found),),
            answer=found,
            document=recovery_document(found),
            page=f"{run.root}/recovery.html",
        )


def recovery(
    suite: str,
    directory: str,
    *,
    overrides: Sequence[str] = (),
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Recovery:
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
    found = experiments.perform(
        Drills(), suite, directory, overrides=overrides, settings=settings, say=say
    )
    assert isinstance(found.answer, Recovery)
    return found.answer
