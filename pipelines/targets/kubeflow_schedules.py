"""Recurring runs of Kubeflow: one takes the place of another, and they pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import kfp_server_api

from orbax_bench_core.document import count
from orbax_bench_core.errors import UserError, command
from orbax_bench_pipelines.targets.kubeflow_server import KubeflowServer

_POLL_S = 30.0
_ENABLED = "ENABLED"


class KubeflowSchedules:
    """The recurring runs of one name."""

    def __init__(self, server: KubeflowServer, name: str) -> None:
        """Takes where they are, and their name."""
        self._server = server
        self._name = name

    def replace(
        self, body: Callable[[str, bool], Any], *, wait: bool, say: Callable[[str], None]
    ) -> list[str]:
        """Creates a recurring run in place of those of the same name.

        Kubeflow cannot change one. The old ones are paused first, so that they never fire together
        with the new one, and go on where that is refused. With one, Kubernetes would delete the
        runs that it has begun: while one of them is active it is only left paused.
        """
        server, disabled = self._server, []
        with server.explained():
            experiment = server.experiment_id()
            old = server.recurring_runs(self._name, experiment)
        paused = bool(old) and not _fires(old[-1])
        try:
            with server.explained():
                for each in old:
                    if _fires(each):
                        server.client.disable_recurring_run(each.recurring_run_id)
                        disabled.append(each)
            if wait:
                self._await_end(old, experiment, say)
            with server.explained():
                new = server.client.recurring_runs.recurring_run_service_create_recurring_run(
                    recurring_run=body(experiment, paused)
                )
        except BaseException:
            with server.explained():
                for each in disabled:
                    server.client.enable_recurring_run(each.recurring_run_id)
            raise
        made = [f"Recurring run: {self._name} {new.recurring_run_id}"]
        if paused:
            made.append(f"note: it is paused; {command('pipeline', 'resume', self._name)}")
        return [*made, *(self._removed(each.recurring_run_id, experiment) for each in old)]

    def pause(self) -> list[str]:
        """Has them fire no more; runs under way go on."""
        return self._each("disable_recurring_run", "paused")

    def resume(self) -> list[str]:
        """Has the newest fire again, at its next time."""
        return self._each("enable_recurring_run", "resumed", newest=True)

    def _each(self, call: str, word: str, *, newest: bool = False) -> list[str]:
        server, said = self._server, []
        with server.explained():
            experiment = server.experiment_id()
            found = server.recurring_runs(self._name, experiment)
            if not found:
                raise UserError(
                    f"there is no recurring run {self._name!r} in the experiment "
                    f"{server.experiment!r}; --set experiment=NAME names another"
                )
            # Of several, all but the newest wait for runs of theirs to end, and are to be deleted.
            for each in found[-1:] if newest else found:
                getattr(server.client, call)(each.recurring_run_id)
                active = server.active_runs(each.recurring_run_id, experiment)
                said.append(f"{word}: {self._name} {each.recurring_run_id}{_going_on(active)}")
        return said

    def _await_end(self, old: list[Any], experiment: str, say: Callable[[str], None]) -> None:
        shown: list[str] = []
        while True:
            with self._server.explained():
                active = [
                    run
                    for each in old
                    for run in self._server.active_runs(each.recurring_run_id, experiment)
                ]
            if not active:
                return
            if active != shown:
                shown = active
                say(f"waiting for {', '.join(active)} to end")
            time.sleep(_POLL_S)

    def _removed(self, recurring_run: str, experiment: str) -> str:
        server = self._server
        with server.explained():
            active = server.active_runs(recurring_run, experiment)
            if not active:
                server.client.delete_recurring_run(recurring_run)
                return f"replaces {recurring_run}"
        return (
            f"replaces {recurring_run}, which stays paused{_going_on(active)}: deleting it would "
            "end them; schedule again later, or with --wait, to delete it"
        )


def _fires(recurring_run: kfp_server_api.V2beta1RecurringRun) -> bool:
    return recurring_run.status in (None, _ENABLED)


def _going_on(active: list[str]) -> str:
    return (
        f"; {count(len(active), 'run')} of it still active: {', '.join(active)}" if active else ""
    )
