"""Process 0 of a cluster: it waits for the agents of the other hosts, and hands them workers."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.hosts.host import (
    HostsMissing,
    Inbox,
    Output,
    Unmade,
    WorkerHandle,
    stop_all,
)
from orbax_bench_core.execute.hosts.local import LocalHost
from orbax_bench_core.execute.hosts.luggage import pack
from orbax_bench_core.execute.hosts.remote import RemoteHost
from orbax_bench_core.execute.hosts.rendezvous import (
    Rendezvous,
    differences,
    machine_id,
    place_proof,
)
from orbax_bench_core.execute.hosts.wire import (
    CONTACT,
    Contact,
    Message,
    Refused,
    Wire,
    prove_as_head,
    refuse,
)
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.worker import WorkerSetup

HOST_WAIT_S = 120.0

_SAY_AGAIN_S = 30.0
_NEWCOMERS = 64


class ClusterHosts:
    """All hosts of a run as one `Host`: worker i of a group runs on host i modulo their number.

    Attributes:
        code: What the agents exit with when the run ends.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: RunDirectory,
        *,
        equal: Mapping[str, str],
        suite: str = "",
        own: LocalHost,
        say: Callable[[str], None],
        host_wait_s: float = HOST_WAIT_S,
        contact: Contact = CONTACT,
        part: str = "",
    ) -> None:
        """Describes process 0; `listening` lets the others join.

        Args:
            cluster: The place of this process, which is host 0.
            directory: The run directory, or the one that is to hold several.
            equal: What must be the same on every host.
            suite: The suite file, which travels with its folder; empty where none does.
            own: Starts the workers of this host.
            say: Takes lines for people.
            host_wait_s: Seconds for which a lost host is waited for.
            contact: Times of connections.
            part: Name of what is measured, where others measure other parts of the run meanwhile.
        """
        self.code = int(Exit.FAILED)
        self._cluster = cluster
        self._directory = directory
        self._equal = dict(equal)
        self._suite = suite
        self._own = own
        self._say = say
        self._host_wait_s = host_wait_s
        self._contact = contact
        self._rendezvous = Rendezvous(directory.root, part)
        self._others: dict[int, RemoteHost] = {}
        self._refused: dict[str, float] = {}
        self._environments: dict[str, EnvironmentConfig] = {}
        self._run = secrets.token_hex(16)
        self._is_alone = False
        self._changed = threading.Condition()
        self._newcomers = threading.BoundedSemaphore(_NEWCOMERS)

    @contextlib.contextmanager
    def listening(self, token: str | None) -> Iterator[None]:
        """Lets agents join, until the run ends; then they are told to end as well.

        Args:
            token: The token that every host was given; None writes one into the run directory.

        Raises:
            UserError: This process cannot listen, the run directory cannot be written, or the
                suite's folder is too large to travel.
        """
        luggage = pack(self._suite, str(self._directory.root))
        data = None if luggage is None else luggage.data
        with self._listen() as server, self._rendezvous.offered(token, data) as (secret, place):
            address = str(server.getsockname()[0])
            self._own = dataclasses.replace(self._own, address=address)
            shown: Message = {"place": place_proof(place), "suite": None}
            if luggage is not None:
                shown["suite"] = {
                    "name": luggage.name,
                    "digest": luggage.digest,
                    "hashes": dict(luggage.hashes),
                }
            welcome = (server, secret, shown)
            threading.Thread(target=self._accept, args=welcome, daemon=True).start()
            try:
                yield
            finally:
                self._dismiss()
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts

    def await_all(self) -> None:
        """Waits until every host has joined, and names those that are missing meanwhile.

        Raises:
            UserError: Some have not joined in time.
        """
        hosts = range(1, self._cluster.size)
        if not self._await(hosts, self._contact.join_s, "to join"):
            raise UserError(
                f"{self._names(self._missing(hosts))} of {self._cluster.size} did not join within "
                f"{self._contact.join_s:g} s: start the same command on every host"
            )

    def provenance(self, worker: int) -> dict[str, Any]:
        """Returns what the host of a worker has said of itself when it joined; see `Host`."""
        place = self.place(worker)
        if place in self._others:
            return self._others[place].provenance
        return host_provenance()

    def free_address(self) -> str:
        """Returns an address of this host, which has the first worker of every group."""
        return self._own.free_address()

    def place(self, worker: int) -> int:
        """Returns on which host a worker of a group runs; 0 is this one."""
        return worker % self._cluster.size

    @contextlib.contextmanager
    def alone(self, say: Callable[[str], None]) -> Iterator[None]:
        """Holds the measuring lock of every host; see `Host`."""
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

    def make_environments(
        self, configs: Sequence[EnvironmentConfig], *, folder: Path, say: Callable[[str], None]
    ) -> Unmade:
        """Has every host make its own environments, all at once; see `Host`."""
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
        """Runs a module on every host, one after the other; see `Host`."""
        yield from self._own.run_module(module, argument, variables=variables, timeout_s=timeout_s)
        root = str(self._directory.root)
        for _, host in sorted(self._others.items()):
            yield host.run_module(
                module, argument, root=root, variables=variables, timeout_s=timeout_s
            )

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> list[WorkerHandle]:
        """Starts each worker on its host; see `Host`. Of a lost host it first waits for the return.

        Raises:
            HostsMissing: A lost host has not come back in time.
        """
        places = [self.place(setup.process_id) for setup in setups]
        self._await_back(sorted(set(places) - {0}))
        workers: list[WorkerHandle] = []
        try:
            for setup, log, place in zip(setups, logs, places, strict=True):
                host: RemoteHost | LocalHost = self._others[place] if place else self._own
                workers += host.launch(
                    [setup],
                    environment=environment,
                    python=python,
                    logs=[log],
                    inbox=inbox,
                )
        except BaseException:
            stop_all(workers)
            raise
        return workers

    def _await_back(self, hosts: Sequence[int]) -> None:
        """Waits until there is contact with some hosts and they have what workers there need.

        Raises:
            HostsMissing: A lost host has not come back in time.
        """
        while True:
            self._await_contact(hosts)
            present = [self._others[host] for host in hosts]
            _at_once([functools.partial(self._equip, host) for host in present])
            if not self._missing(hosts):
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

    def _await_contact(self, hosts: Sequence[int]) -> None:
        with self._changed:
            why = [self._others[host].lost for host in self._missing(hosts) if host in self._others]
        if not self._await(hosts, self._host_wait_s, "to come back"):
            raise HostsMissing(
                f"{'; '.join(why)}; {self._names(self._missing(hosts))} did not come back within "
                f"{self._host_wait_s:g} s; start the same command on every host again"
            )

    def _await(self, hosts: Sequence[int], within_s: float, what: str) -> bool:
        """Returns whether there is contact with all of some hosts, at the latest in `within_s`."""
        deadline, told_at = time.monotonic() + within_s, -_SAY_AGAIN_S
        with self._changed:
            while missing := self._missing(hosts):
                now = time.monotonic()
                if now >= deadline:
                    return False
                if now - told_at >= _SAY_AGAIN_S:
                    names, size = self._names(missing), self._cluster.size
                    self._say(f"waiting for {names} of {size} {what} at {self._cluster.address}")
                    told_at = now
                self._changed.wait(min(deadline - now, 1.0))
        return True

    def _missing(self, hosts: Sequence[int]) -> list[int]:
        return [host for host in hosts if host not in self._others or self._others[host].lost]

    def _names(self, hosts: Sequence[int]) -> str:
        names = [
            f"{host} ({self._others[host].name})" if host in self._others else str(host)
            for host in hosts
        ]
        return f"host{'s' if len(names) > 1 else ''} {', '.join(names)}"

    def _listen(self) -> socket.socket:
        """Listens at the one address that the others were told, not at all of this machine."""
        cluster = self._cluster
        try:
            found = socket.getaddrinfo(cluster.head, cluster.port, type=socket.SOCK_STREAM)
            # Many machines have a name of their own at an address that no other machine can reach.
            family, _, _, _, address = min(found, key=lambda one: _is_loopback(one[4][0]))
            server = socket.create_server(address[:2], family=family)
        except OSError as error:
            raise UserError(
                f"process 0 cannot listen at {cluster.address} ({cluster.found}): {error}; it runs "
                "on the host that this address names"
            ) from None
        if _is_loopback(address[0]) and cluster.head not in ("localhost", address[0]):
            self._say(
                f"{cluster.head} is {address[0]} on this host, which no other machine can reach; "
                "on several machines set ORBAX_BENCH_HEAD_HOST to an address that they can"
            )
        return server

    def _accept(self, server: socket.socket, token: str, shown: Message) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # closed: the run has ended
                return
            if not self._newcomers.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._welcome, args=(connection, token, shown), daemon=True
            ).start()

    def _welcome(self, connection: socket.socket, token: str, shown: Message) -> None:
        wire: Wire | None = None
        try:
            wire = Wire(connection, self._contact.lost_s)
            self._admit(wire, token, shown)
        except (OSError, Refused, KeyError, ValueError, TypeError) as error:
            peer = "somebody" if wire is None else wire.peer
            self._say_refused(f"refused an agent from {peer}: {error}")
            connection.close()
        finally:
            self._newcomers.release()

    def _say_refused(self, line: str) -> None:
        """Says why somebody was refused; one that comes again and again is told of now and then."""
        now = time.monotonic()
        with self._changed:
            told = {one: at for one, at in self._refused.items() if now - at < _SAY_AGAIN_S}
            self._refused = {line: now, **told}
        if line not in told:
            self._say(line)

    def _admit(self, wire: Wire, token: str, shown: Message) -> None:
        rank = prove_as_head(wire, token, self._cluster.size, self._contact.prove_s)
        wire.send(shown)
        joining = wire.receive()
        name, root = str(joining["name"]), str(joining["root"])
        who = f"host {rank} ({name})"
        if joining["size"] != self._cluster.size:
            refuse(
                wire,
                f"{who} was told that there are {joining['size']} hosts, and process 0 that there "
                f"are {self._cluster.size}: give every host the same number",
            )
        different = differences(self._equal, joining["equal"])
        if different:
            refuse(wire, f"{who} has {different}")
        if joining["place"] != shown["place"]:
            refuse(
                wire,
                f"{root} on {who} is not the run directory {self._directory.root} of process 0: "
                "every host must see the same folder",
            )
        if joining["suite"]:
            refuse(wire, f"{who} has another suite: {joining['suite']}")
        with self._changed:
            earlier = self._others.get(rank)
            if earlier is not None and not earlier.lost:
                refuse(wire, f"another agent is host {rank} already ({earlier.name})", again=True)
            wire.send({"welcome": rank})
            self._others[rank] = RemoteHost(
                wire,
                index=rank,
                name=name,
                machine=str(joining["machine"]),
                provenance=dict(joining["provenance"]),
                rejoined=0 if earlier is None else earlier.rejoined + 1,
                root=str(self._directory.root),
                contact=self._contact,
                on_loss=self._lost,
                say=self._say,
            )
            self._changed.notify_all()
        self._say(f"{who} has {'come back' if earlier else 'joined'} from {wire.peer}")

    def _lost(self, line: str) -> None:
        self._say(line)
        with self._changed:
            self._changed.notify_all()

    def _dismiss(self) -> None:
        with self._changed:
            others = [host for host in self._others.values() if not host.lost]
        _at_once([functools.partial(host.dismiss, self.code) for host in others])


def _at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Makes calls in a thread each, and raises the first error of one.

    An interrupt leaves them behind: what they wait for may take long, and ends with the run.
    """
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


def _is_loopback(address: object) -> bool:
    return ipaddress.ip_address(str(address).partition("%")[0]).is_loopback
