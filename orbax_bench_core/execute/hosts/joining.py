"""Joining process 0 from another host: proofs of both sides, and the suite that travels."""

from __future__ import annotations

import platform
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.hosts.rendezvous import Rendezvous
from orbax_bench_core.execute.hosts.suite_archive import MOST_PACKED_BYTES, differing, unpack
from orbax_bench_core.execute.hosts.wire import Contact, Message, Refused, Wire, prove_as_agent
from orbax_bench_core.files import machine_id
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.records import RunDirectory

_CONNECT_S: Final = 5.0
_PAUSE_S: Final = 0.3


class Joining:
    """The way of one host into a run.

    Attributes:
        suite: The suite file, as this host sees it; once it has joined without one, its copy.
    """

    def __init__(
        self,
        cluster: Cluster,
        directory: RunDirectory,
        *,
        suite: str,
        equal: Mapping[str, str],
        token: str | None,
        contact: Contact,
        part: str,
        say: Callable[[str], None],
    ) -> None:
        """Describes who wants to join; the arguments are those of `Agent`."""
        self.suite = suite
        self._cluster = cluster
        self._directory = directory
        self._rendezvous = Rendezvous(directory.root, part)
        self._equal = dict(equal)
        self._token = token
        self._contact = contact
        self._say = say

    def join(self, folder: Path) -> Wire:
        """Returns a connection over which process 0 has accepted this host."""
        begun = time.monotonic()
        deadline = begun + self._contact.join_s
        refused_until: float | None = None
        told, why = set[str](), "process 0 has not started"
        while time.monotonic() < deadline:
            token = self._token or self._rendezvous.token()
            try:
                return self._try_to_join(token, folder)
            except OSError as error:
                why = str(error) if token else f"there is no token in {self._directory.root} yet"
            except Refused as refusal:
                why = f"refused: {refusal}"
                now = time.monotonic()
                refused_until = refused_until or now + self._contact.retry_s
                if not refusal.again or now > refused_until:
                    break
            if why not in told:
                self._say(f"waiting for process 0 at {self._cluster.address}: {why}")
                told.add(why)
            time.sleep(_PAUSE_S)
        raise UserError(
            f"host {self._cluster.rank} ({platform.node()}) cannot join process 0 at "
            f"{self._cluster.address}: {why} (after {time.monotonic() - begun:.1f} s)"
        )

    def _try_to_join(self, token: str | None, folder: Path) -> Wire:
        address = (self._cluster.head, self._cluster.port)
        wire = Wire(socket.create_connection(address, timeout=_CONNECT_S), self._contact.lost_s)
        try:
            prove_as_agent(wire, token, self._cluster.rank, self._contact.prove_s)
            asked = wire.receive()
            if "refused" in asked:
                raise Refused(str(asked["refused"]), again=bool(asked.get("again")))
            place = self._rendezvous.place(str(asked["place"]))
            here = place == asked["place"]
            wire.send(
                {
                    "name": platform.node(),
                    "size": self._cluster.size,
                    "machine": machine_id(),
                    "provenance": host_provenance(),
                    "equal": self._equal,
                    "place": place,
                    "root": str(self._directory.root),
                    "suite": self._take_suite(asked["suite"], folder) if here else "",
                }
            )
            answer = wire.receive()
            if "refused" in answer:
                raise Refused(str(answer["refused"]), again=bool(answer.get("again")))
        except (KeyError, ValueError, TypeError):
            wire.close()
            raise Refused("what answers there is no process 0 of a run", again=True) from None
        except BaseException:
            wire.close()
            raise
        return wire

    def _take_suite(self, shown: Message | None, folder: Path) -> str:
        """Compares the suite of this host with that of process 0, or takes the copy of it."""
        if shown is None:
            return ""
        if Path(self.suite).is_file():
            differ = differing(shown["hashes"], self.suite)
            return differ and f"{differ} is not as on process 0; copy it, or remove it"
        try:
            data = self._rendezvous.suite_archive(MOST_PACKED_BYTES)
            unpack(data, folder, digest=shown["digest"])
        except (OSError, ValueError) as error:
            return f"there is no {self.suite}, and the copy of process 0 cannot be read: {error}"
        self._say(f"{self.suite} is not on this host: taking the copy of process 0")
        self.suite = str(folder / shown["name"])
        return ""
