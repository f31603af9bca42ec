"""Soak on a terminal: saves until a goal is reached, and the verdict on what they leave."""

from __future__ import annotations

from orbax_bench_core.analysis.soak import headline, soak_document
from orbax_bench_core.cli.measurement import Interrupted, Measurement, stoppable
from orbax_bench_core.cli.results import show_answer
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.steps import SoakGoal, publish, publish_soak, soak_points


class SoakRun(Measurement):
    """A suite whose point is about to be saved again and again."""

    def soak(self, goal: SoakGoal, *, limit_mib: float, as_json: bool) -> int:
        """Makes saves until the goal is reached, shows the verdict, and returns the exit code.

        Args:
            goal: When the soak ends.
            limit_mib: Growth of memory per save that is allowed, in MiB.
            as_json: Whether standard output gets the verdict as JSON and nothing else.
        """
        self._say_notes()
        try:
            with stoppable():
                soak_points(self._session, goal, lock=self._lock)
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            return stop.code
        directory = self._session.directory
        try:
            found = publish_soak(directory, limit_mib)
            summary = publish(directory)
        except OSError as failure:
            return self._unwritten(failure, "soak")
        except UserError as nothing:
            return self._without(nothing)
        show_answer(found, soak_document(found), f"{directory.root}/soak.html", as_json=as_json)
        code = exit_code(found.outcome, summary.outcome)
        said = f"{found.word}: {headline(found)}"
        self._notifiers.ended(found.suite, code, str(directory.root), (said,))
        return code
