"""Process 0 of a cluster: all hosts of a run as one, to which it hands workers."""

import contextlib
import dataclasses
import functools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.hosts.host import HostsMissing, Inbox, Output, Unmade, stop_all
from orbax_bench_core.execute.hosts.host_server import HostServer
from orbax_bench_core.execute.hosts.join_files import ClusterRun
from orbax_bench_core.execute.hosts.local import LocalHost, LocalWorker
from orbax_bench_core.execute.hosts.remote import RemoteHost, RemoteWorker
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import machine_id
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.worker import WorkerSetup

HOST_WAIT_S = 120.0
"""Seconds for which hosts that were lost are waited for, until the run ends."""

WorkerHandle = LocalWorker | RemoteWorker
"""A worker that runs; its own lines arrive in the inbox of its group."""


class ClusterHosts:
    """All hosts of a run as one: worker i of a group runs on host i modulo their number."""

    def __init__(
        self, run: ClusterRun, *, own: LocalHost, host_wait_s: float = HOST_WAIT_S
    ) -> None:
        self.code = int(Exit.FAILED)  # what the agents exit with when the run ends
        self._cluster = run.cluster
        self._own = own
        self._host_wait_s = host_wait_s
        self._join_s = run.contact.join_s
        self._server = HostServer(run)
        self._others: Mapping[int, RemoteHost] = self._server.hosts
        self._environments: dict[str, EnvironmentConfig] = {}
        self._run = secrets.token_hex(16)
        self._is_alone = False

    @contextlib.contextmanager
    def listening(self, token: str | None) -> Iterator[None]:
        """Lets agents join, until the run ends; then they are told to end as well."""
        with self._server.open(token):
            try:
                yield
            finally:
                present = self._server.present()
                _at_once([functools.partial(host.dismiss, self.code) for host in present])

    def await_all(self) -> None:
        """Waits until every host has joined, and names those that are missing meanwhile.

        Raises:
            UserError: Some did not join in time; the message names them.
        """
        hosts = range(1, self._cluster.size)
        if not self._server.wait(hosts, self._join_s, "to join"):
            missing = self._server.names(self._server.missing(hosts))
            raise UserError(
                f"{missing} of {self._cluster.size} did not join within {self._join_s:g} s: "
                "start the same command on every host"
            )

    def provenance(self, worker: int) -> dict[str, Any]:
        """Returns the details a worker's host gave when it joined; see `LocalHost`."""
        place = self.place(worker)
        if place in self._others:
            return self._others[place].provenance
        return host_provenance()

    def free_address(self) -> str:
        """Returns an address of this host, which has the first worker of every group."""
        address = self._server.address or self._own.address
        return dataclasses.replace(self._own, address=address).free_address()

    def place(self, worker: int) -> int:
        """Returns on which host a worker of a group runs; 0 is this one."""
        return worker % self._cluster.size

    @contextlib.contextmanager
    def alone(self, say: Callable[[str], None]) -> Iterator[None]:
        """Holds the measuring lock of every host; see `LocalHost`."""
        others = range(1, self._cluster.size)
        self._await_back(others)
        with contextlib.ExitStack() as held:
            held.callback(self._unlock)
            # All runs lock machines in one order: otherwise two could wait for each other for ever.
            for _, index in sorted((self._machine(host), host) for host in (0, *others)):
                if index:
                    self._others[index].lock(self._run)
                else:
                    held.enter_context(self._own.alone(say, self._run))
            self._is_alone = True
            self._await_back(others)
            yield

    def machines(self) -> Sequence[str]:
        """Returns the identity of each host's machine; see `LocalHost`."""
        return [self._machine(host) for host in range(self._cluster.size)]

    def make_environments(
        self,
        configs: Sequence[EnvironmentConfig],
        *,
        folder: Path | None,
        say: Callable[[str], None],
    ) -> Unmade:
        """Has every host make its own environments, all at once; see `LocalHost`."""
        if not configs:
            return {}
        self._environments.update({config.name: config for config in configs})
        unmade: Unmade = {}

        def make_own() -> None:
            unmade.update(self._own.make_environments(configs, folder=folder, say=say))

        _at_once([make_own, lambda: self._await_back(range(1, self._cluster.size))])
        for index, host in self._others.items():
            for config in configs:
                if config.name in host.unmade:
                    reason = f"on host {index} ({host.name}): {host.unmade[config.name]}"
                    unmade.setdefault(config.name, {})[index] = reason
        return unmade

    def run_module(
        self, module: str, argument: str, *, variables: Mapping[str, str], timeout_s: float
    ) -> Iterator[Output]:
        """Runs a module on every host, one after the other; see `LocalHost`."""
        yield from self._own.run_module(module, argument, variables=variables, timeout_s=timeout_s)
        for _, host in sorted(self._others.items()):
            yield host.run_module(module, argument, variables=variables, timeout_s=timeout_s)

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> list[WorkerHandle]:
        """Starts each worker on its host; see `LocalHost`. It waits for a lost host to return."""
        places = [self.place(setup.process_id) for setup in setups]
        self._await_back(sorted(set(places) - {0}))
        workers: list[WorkerHandle] = []
        try:
            for setup, log, place in zip(setups, logs, places, strict=True):
                host: RemoteHost | LocalHost = self._others[place] if place else self._own
                workers += host.launch(
                    [setup], environment=environment, python=python, logs=[log], inbox=inbox
                )
        except BaseException:
            stop_all([worker.stop for worker in workers])
            raise
        return workers

    def _await_back(self, hosts: Sequence[int]) -> None:
        """Waits until there is contact with some hosts and they have what workers there need."""
        while True:
            why = "; ".join(self._server.losses(hosts))
            if not self._server.wait(hosts, self._host_wait_s, "to come back"):
                missing = self._server.names(self._server.missing(hosts))
                raise HostsMissing(
                    f"{why}; {missing} did not come back within {self._host_wait_s:g} s; start the "
                    "same command on every host again"
                )
            present = [self._others[host] for host in hosts]
            _at_once([functools.partial(self._equip, host) for host in present])
            # One may have been lost again while it was given what it needs.
            if not self._server.missing(hosts):
                return

    def _equip(self, host: RemoteHost) -> None:
        """Gives a host that has joined or come back what it does not have yet."""
        if self._is_alone:
            host.lock(self._run)
        host.make_environments(list(self._environments.values()))

    def _unlock(self) -> None:
        self._is_alone = False
        _at_once([host.unlock for host in self._others.values()])

    def _machine(self, host: int) -> str:
        return self._others[host].machine if host else machine_id()


Host = LocalHost | ClusterHosts
"""Starts the workers of a group."""


def _at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Makes calls in a thread each, and raises the first error of one."""
    # An interrupt leaves them behind: what they wait for may take long, and ends with the run.
    failures: list[Exception] = []

    def make(call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - it is raised in the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=make, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
