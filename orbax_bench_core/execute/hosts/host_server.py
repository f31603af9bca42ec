"""HostServer of agents at process 0: who is let in, who is refused and why, and who is missing."""

import collections
import contextlib
import errno
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from orbax_bench_core.errors import UserError, one_line
from orbax_bench_core.execute.hosts.join_files import ClusterRun, differences, place_proof
from orbax_bench_core.execute.hosts.remote import RemoteHost
from orbax_bench_core.execute.hosts.suite_archive import pack
from orbax_bench_core.execute.hosts.wire import Message, Refused, Wire, prove_as_head, refuse

_SAY_AGAIN_S: Final = 30.0
"""Seconds after which the same line may be said again."""
_AFTER_ERROR_S: Final = 0.1
_PAUSE_S: Final = 0.3
"""Seconds between two tries to listen at an address that is not there yet."""
_NEWCOMERS: Final = 256
"""Connections at once of agents that have not been let in yet."""
_OF_ONE_ADDRESS: Final = 16
"""Of these from one address: silent ones keep out nobody of another address."""


class HostServer:
    """Lets agents join process 0, and knows which of the other hosts are there."""

    def __init__(self, run: ClusterRun) -> None:
        # hosts that have joined, by index; those too with which contact was lost since
        self.hosts: dict[int, RemoteHost] = {}
        # address of this host at which another has reached it; empty while none has
        self.address = ""
        self._run = run
        self._cluster, self._directory = run.cluster, run.directory
        self._contact, self._say = run.contact, run.say
        self._refused: dict[str, float] = {}
        self._changed = threading.Condition()
        self._newcomers: collections.Counter[str] = collections.Counter()
        self._closed = threading.Event()

    @contextlib.contextmanager
    def open(self, token: str | None) -> Iterator[None]:
        """Lets agents join meanwhile."""
        suite_archive = pack(self._run.suite, str(self._directory.root), self._run.text)
        if suite_archive is not None:
            self._say(f"for the other hosts: {suite_archive.said}")
        data = None if suite_archive is None else suite_archive.data
        offered = self._run.join_files.offered(token, data)
        with self._listen() as server, offered as (secret, place):
            shown: Message = {"place": place_proof(place), "suite": None}
            if suite_archive is not None:
                shown["suite"] = {
                    "name": suite_archive.name,
                    "digest": suite_archive.digest,
                    "hashes": dict(suite_archive.hashes),
                }
            welcome = (server, secret, shown)
            threading.Thread(target=self._accept, args=welcome, daemon=True).start()
            try:
                yield
            finally:
                self._closed.set()
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts

    def wait(self, hosts: Sequence[int], within_s: float, what: str) -> bool:
        """Returns whether there is contact with all of some hosts, at the latest in `within_s`.

        Args:
            hosts: Indices of the hosts.
            within_s: Seconds to wait.
            what: What they are waited for, for people, such as `to join`.
        """
        deadline, told_at = time.monotonic() + within_s, -_SAY_AGAIN_S
        with self._changed:
            while missing := self.missing(hosts):
                now = time.monotonic()
                if now >= deadline:
                    return False
                if now - told_at >= _SAY_AGAIN_S:
                    names, size = self.names(missing), self._cluster.size
                    self._say(f"waiting for {names} of {size} {what} at {self._cluster.address}")
                    told_at = now
                self._changed.wait(min(deadline - now, 1.0))
        return True

    def missing(self, hosts: Sequence[int]) -> list[int]:
        """Returns those of some hosts with which there is no contact."""
        return [host for host in hosts if host not in self.hosts or self.hosts[host].lost]

    def present(self) -> list[RemoteHost]:
        """Returns the hosts with which there is contact."""
        with self._changed:
            return [host for host in self.hosts.values() if not host.lost]

    def losses(self, hosts: Sequence[int]) -> list[str]:
        """Returns how contact was lost with those of some hosts that had joined."""
        with self._changed:
            return [self.hosts[host].lost for host in self.missing(hosts) if host in self.hosts]

    def names(self, hosts: Sequence[int]) -> str:
        """Returns some hosts by index and name, for people."""
        names = [
            f"{host} ({self.hosts[host].name})" if host in self.hosts else str(host)
            for host in hosts
        ]
        return f"host{'s' if len(names) > 1 else ''} {', '.join(names)}"

    def _listen(self) -> socket.socket:
        """Listens at the one address that the others were told, not at all of this machine."""
        # Where that has no address yet, as the name of a pod has none that has just started, it
        # listens at all: the others wait until the name resolves, and this process needs no name.
        cluster, begun = self._cluster, time.monotonic()
        while True:
            try:
                found = socket.getaddrinfo(cluster.head, cluster.port, type=socket.SOCK_STREAM)
                # Many machines have a name at an address that no other machine can reach.
                family, *_, address = min(found, key=lambda answer: _is_loopback(answer[4][0]))
                server = socket.create_server(address[:2], family=family)
                break
            except socket.gaierror as error:
                self._say(f"{cluster.head} has no address yet ({error}): listening at all of ours")
                return self._listen_everywhere()
            except OSError as error:
                # The address of a pod may be that of its predecessor for some seconds.
                passing = error.errno == errno.EADDRNOTAVAIL and not _is_address(cluster.head)
                if passing and time.monotonic() - begun < self._contact.retry_s:
                    time.sleep(_PAUSE_S)
                    continue
                raise self._cannot_listen(error) from None
        if _is_loopback(address[0]) and cluster.head not in ("localhost", address[0]):
            self._say(
                f"{cluster.head} is {address[0]} on this host, which no other machine can reach; "
                "on several machines set ORBAX_BENCH_HEAD_HOST to an address that they can"
            )
        return server

    def _listen_everywhere(self) -> socket.socket:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        try:
            return socket.create_server(
                ("", self._cluster.port), family=family, dualstack_ipv6=both
            )
        except OSError as error:
            raise self._cannot_listen(error) from None

    def _cannot_listen(self, error: OSError) -> UserError:
        return UserError(
            f"process 0 cannot listen at {self._cluster.address} ({self._cluster.found}): {error}; "
            "it runs on the host that this address names"
        )

    def _accept(self, server: socket.socket, token: str, shown: Message) -> None:
        while not self._closed.is_set():
            try:
                connection, (peer, *_) = server.accept()
            except OSError:  # closed, or out of descriptors, or gone before it was taken
                self._closed.wait(_AFTER_ERROR_S)
                continue
            with self._changed:
                full = self._newcomers.total() >= _NEWCOMERS
                if full or self._newcomers[peer] >= _OF_ONE_ADDRESS:
                    connection.close()
                    continue
                self._newcomers[peer] += 1
            welcome = (connection, peer, token, shown)
            threading.Thread(target=self._welcome, args=welcome, daemon=True).start()

    def _welcome(self, connection: socket.socket, peer: str, token: str, shown: Message) -> None:
        try:
            self._admit(Wire(connection, self._contact.lost_s), token, shown)
        except Exception as error:  # noqa: BLE001 - whatever the input of a peer leads to
            kinds = OSError | Refused  # whose words are ours; of others only the kind is known
            why = one_line(str(error)) if isinstance(error, kinds) else "a message of another form"
            shown_peer = peer.removeprefix("::ffff:")
            self._say_refused(f"refused an agent from {shown_peer}: {why}")
            connection.close()
        finally:
            with self._changed:
                self._newcomers[peer] -= 1
                if not self._newcomers[peer]:
                    del self._newcomers[peer]

    def _say_refused(self, line: str) -> None:
        """Says why somebody was refused; one that comes again and again is told of now and then."""
        # What differs in a number alone, such as the length of a message, is the same.
        now, kind = time.monotonic(), re.sub(r"\d+", "#", line)
        with self._changed:
            told = {earlier: at for earlier, at in self._refused.items() if now - at < _SAY_AGAIN_S}
            self._refused = {kind: now, **told}
        if kind not in told:
            self._say(line)

    def _admit(self, wire: Wire, token: str, shown: Message) -> None:
        rank = prove_as_head(wire, token, self._cluster.size, self._contact.prove_s)
        wire.send(shown)
        joining = wire.receive()
        name, root = one_line(str(joining["name"])), one_line(str(joining["root"]))
        who = f"host {rank} ({name})"
        if joining["size"] != self._cluster.size:
            refuse(
                wire,
                f"{who} was told that there are {joining['size']} hosts, and process 0 that there "
                f"are {self._cluster.size}: give every host the same number",
            )
        different = differences(self._run.equal, joining["equal"])
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
            earlier = self.hosts.get(rank)
            if earlier is not None and not earlier.lost:
                # That one may be gone, and not yet silent for long enough to be taken for lost.
                refuse(wire, f"another agent is host {rank} already ({earlier.name})", again=True)
            if not self.address or _is_loopback(self.address):
                self.address = wire.address
            wire.send({"welcome": rank})
            self.hosts[rank] = RemoteHost(
                wire=wire,
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


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(address: object) -> bool:
    return ipaddress.ip_address(str(address).partition("%")[0]).is_loopback
