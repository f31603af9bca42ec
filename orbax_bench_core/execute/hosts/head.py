"""Process 0 of a cluster: it waits for the agents of the other hosts, and hands them workers."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from orbax_bench_core.config import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.hosts.host import Host, HostsMissing, Inbox, WorkerHandle, stop_all
from orbax_bench_core.execute.hosts.local import LocalHost
from orbax_bench_core.execute.hosts.remote import RemoteHost
from orbax_bench_core.execute.hosts.rendezvous import Rendezvous, differences, place_proof
from orbax_bench_core.execute.hosts.wire import (
    CONTACT,
    Contact,
    Refused,
    Wire,
    prove_as_head,
    refuse,
)
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
        own: LocalHost,
        say: Callable[[str], None],
        host_wait_s: float = HOST_WAIT_S,
        contact: Contact = CONTACT,
    ) -> None:
        """Describes process 0; `listening` lets the others join.

        Args:
            cluster: The place of this process, which is host 0.
            directory: The run directory.
            equal: What must be the same on every host.
            own: Starts the workers of this host.
            say: Takes lines for people.
            host_wait_s: Seconds for which a lost host is waited for.
            contact: Times of connections.
        """
        self.code = 1
        self._cluster = cluster
        self._directory = directory
        self._equal = dict(equal)
        self._own = own
        self._say = say
        self._host_wait_s = host_wait_s
        self._contact = contact
        self._others: dict[int, RemoteHost] = {}
        self._refused: dict[str, float] = {}
        self._changed = threading.Condition()
        self._newcomers = threading.BoundedSemaphore(_NEWCOMERS)

    @contextlib.contextmanager
    def listening(self, token: str | None) -> Iterator[None]:
        """Lets agents join, until the run ends; then they are told to end as well.

        Args:
            token: The token that every host was given; None writes one into the run directory.

        Raises:
            UserError: This process cannot listen, or the run directory cannot be written.
        """
        rendezvous = Rendezvous(self._directory.root)
        with self._listen() as server, rendezvous.offered(token) as (secret, place):
            address = str(server.getsockname()[0])
            self._own = dataclasses.replace(self._own, address=address)
            welcome = (server, secret, place)
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

    def free_address(self) -> str:
        """Returns an address of this host, which has the first worker of every group."""
        return self._own.free_address()

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        executable: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> list[WorkerHandle]:
        """Starts each worker on its host; see `Host`. Of a lost host it first waits for the return.

        Raises:
            HostsMissing: A lost host has not come back in time.
        """
        places = [setup.process_id % self._cluster.size for setup in setups]
        self._await_back(sorted(set(places) - {0}))
        workers: list[WorkerHandle] = []
        try:
            for setup, log, place in zip(setups, logs, places, strict=True):
                host: Host = self._others[place] if place else self._own
                workers += host.launch(
                    [setup],
                    environment=environment,
                    executable=executable,
                    logs=[log],
                    inbox=inbox,
                )
        except BaseException:
            stop_all(workers)
            raise
        return workers

    def _await_back(self, hosts: Sequence[int]) -> None:
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

    def _accept(self, server: socket.socket, token: str, place: str) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # closed: the run has ended
                return
            if not self._newcomers.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._welcome, args=(connection, token, place), daemon=True
            ).start()

    def _welcome(self, connection: socket.socket, token: str, place: str) -> None:
        wire: Wire | None = None
        try:
            wire = Wire(connection, self._contact.lost_s)
            self._admit(wire, token, place)
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

    def _admit(self, wire: Wire, token: str, place: str) -> None:
        rank = prove_as_head(wire, token, self._cluster.size, self._contact.prove_s)
        wire.send({"place": place_proof(place)})
        joining = wire.receive()
        name, root = str(joining["name"]), str(joining["root"])
        who = f"host {rank} ({name})"
        different = differences(self._equal, joining["equal"])
        if different:
            refuse(wire, f"{who} has {different}")
        if joining["place"] != place_proof(place):
            refuse(
                wire,
                f"{root} on {who} is not the run directory {self._directory.root} of process 0: "
                "every host must see the same folder",
            )
        with self._changed:
            earlier = self._others.get(rank)
            if earlier is not None and not earlier.lost:
                refuse(wire, f"another agent is host {rank} already ({earlier.name})", again=True)
            wire.send({"welcome": rank})
            self._others[rank] = RemoteHost(
                wire, index=rank, name=name, contact=self._contact, on_loss=self._lost
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
        leaving = [
            threading.Thread(target=host.dismiss, args=(self.code,), daemon=True) for host in others
        ]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join()


def _is_loopback(address: object) -> bool:
    return ipaddress.ip_address(str(address).partition("%")[0]).is_loopback
