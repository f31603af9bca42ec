"""Recovery drills on a terminal: every repeat killed once, and how it came back."""

from __future__ import annotations

from collections.abc import Mapping

from orbax_bench_core.analysis.recovery import PhaseName, headline, recovery_document
from orbax_bench_core.cli.measurement import Interrupted, Measurement, stoppable
from orbax_bench_core.cli.results import show_answer
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.steps import (
    check_drilled,
    compare_arms,
    measure_points,
    publish,
    publish_recovery,
    publish_verdicts,
)


class RecoveryRun(Measurement):
    """A suite whose repeats are about to be killed."""

    def drill(
        self, added: Mapping[PhaseName, float], *, allow_inconclusive: bool, as_json: bool
    ) -> int:
        """Kills every repeat once, shows how it came back, and returns the exit code.

        Args:
            added: Seconds of what this machine cannot show, by phase.
            allow_inconclusive: Whether INCONCLUSIVE is as good as PASS, with arms.
            as_json: Whether standard output gets the drills as JSON and nothing else.
        """
        check_drilled(self._session)
        directory, verdicts = self._session.directory, None
        self._say_notes()
        try:
            with stoppable():
                if self._session.pairs:
                    verdicts = compare_arms(self._session, lock=self._lock)
                    publish_verdicts(directory, verdicts)
                else:
                    measure_points(self._session, limits=False, lock=self._lock)
            found = publish_recovery(directory, added)
            summary = publish(directory)
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            return stop.code
        except OSError as failure:
            return self._unwritten(failure, "recovery")
        except UserError as nothing:
            return self._without(nothing)
        page = f"{directory.root}/recovery.html"
        show_answer(found, recovery_document(found), page, as_json=as_json)
        also = summary if verdicts is None else verdicts
        code = exit_code(found.outcome, also.outcome, allow_inconclusive=allow_inconclusive)
        if verdicts is not None:
            self._notifiers.verdicts(verdicts, code, str(directory.root))
        else:
            self._notifiers.ended(found.suite, code, str(directory.root), (headline(found),))
        return code
