"""JoinFiles of the hosts of a run: the token, the folder they share, and what must be equal."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import math
import os
import platform
import re
import secrets
import socket
import string
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.hosts.wire import CONTACT, ContactTimes
from orbax_bench_core.execute.variables import TOKEN
from orbax_bench_core.files import AnyPath, read_at_most, refuse_links
from orbax_bench_core.records import RunDirectory

_FOLDER = "cluster"
_TOKEN_FILE = "token"  # noqa: S105 - the name of a file
_PLACE_FILE = "place"
_ARCHIVE_FILE = "suite.zip"
_MOST_NOTE_BYTES: Final = 4096
"""Bytes of the files of the token and of the place."""
_FEWEST_BITS = 128
_ALPHABETS: Final = ((string.digits, 10), (string.hexdigits, 16))
_OTHER_LETTERS = 64
"""Size of any other alphabet: that of base64."""
_SHOWS_S = 5.0
"""Longest time until a file shows on another host: network file systems keep what they read."""
_POLL_S = 0.1
_PACKAGES: Final = ("orbax-bench", "jax", "jaxlib", "orbax-checkpoint")


def given_token(environment: MutableMapping[str, str]) -> str | None:
    """Takes the token out of an environment, so that nothing that is started inherits it.

    Raises:
        UserError: It is short enough to be guessed.
    """
    token = environment.pop(TOKEN, "").strip()
    # What a random token of this length has that is made of such letters.
    alphabets = (size for letters, size in _ALPHABETS if set(token) <= set(letters))
    bits = int(len(token) * math.log2(next(alphabets, _OTHER_LETTERS)))
    if token and bits < _FEWEST_BITS:
        raise UserError(
            f"{TOKEN} has {len(token)} characters, which are {bits} bits at most; anyone who "
            "guesses it can run commands on every host: give at least "
            f"{_FEWEST_BITS} bits, such as what `openssl rand -hex 32` prints"
        )
    return token or None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterRun:
    """A run for which hosts meet, as one of them is told of it; all give the same command."""

    cluster: Cluster  # the place of this host among them
    directory: RunDirectory  # the run directory, which all see
    equal: Mapping[str, str]  # what must be the same on all, by name
    say: Callable[[str], None]  # takes lines for people
    suite: str = ""  # the suite file, as this host sees it
    text: str = ""  # the suite, where overrides have changed it; empty for the file as it is
    contact: ContactTimes = CONTACT  # times of the connections
    part: str = ""  # what tells this run from others that meet in the same folder

    @property
    def join_files(self) -> JoinFiles:
        """The files by which they find and trust each other."""
        return JoinFiles(self.directory.root, self.part)


class JoinFiles:
    """Files in a folder that hosts share, by which they find and trust each other."""

    def __init__(self, root: AnyPath, part: str = "") -> None:
        self._root = root
        self._folder = root / "_".join(filter(None, [_FOLDER, part]))

    @contextlib.contextmanager
    def offered(
        self, token: str | None, suite_archive: bytes | None = None
    ) -> Iterator[tuple[str, str]]:
        """Writes them while the hosts of a run are together.

        Args:
            token: The word by which hosts join, if the user has given one; otherwise a random one
                is written, readable by this user alone.
            suite_archive: The suite's folder for hosts that cannot read it, as `pack` made it.

        Yields:
            The token, and the random word that marks this folder as the one of process 0.

        Raises:
            UserError: The folder cannot be written to.
        """
        place, secret = secrets.token_hex(16), token or secrets.token_hex(32)
        try:
            for name in (_TOKEN_FILE, _ARCHIVE_FILE, _PLACE_FILE):
                refuse_links(self._folder / name, self._root)
            self._folder.mkdir(parents=True, exist_ok=True)
            for name in (_TOKEN_FILE, _ARCHIVE_FILE):  # of a process 0 that was killed
                (self._folder / name).unlink(missing_ok=True)
            if suite_archive is not None:
                _write_private(self._folder / _ARCHIVE_FILE, suite_archive)
            (self._folder / _PLACE_FILE).write_text(place)
            # The token comes last: a host that finds it finds the other files as well.
            if token is None:
                _write_private(self._folder / _TOKEN_FILE, secret.encode())
        except OSError as error:
            raise UserError(f"cannot write to {self._folder}: {error}") from None
        try:
            yield secret, place
        finally:
            self._remove(place)

    def token(self) -> str | None:
        """Returns the token that process 0 has written; None while there is none."""
        return _read(self._folder / _TOKEN_FILE)

    def place(self, expected: str) -> str:
        """Returns the hash of what process 0 has written to mark its folder, or of what is here."""
        deadline = time.monotonic() + _SHOWS_S
        while True:
            found = _read(self._folder / _PLACE_FILE) or ""
            if place_proof(found) == expected or time.monotonic() > deadline:
                return place_proof(found)
            time.sleep(_POLL_S)

    def suite_archive(self, most: int) -> bytes:
        """Returns the archive that process 0 has written, once it shows here.

        Args:
            most: Bytes that it may have.

        Raises:
            OSError: It did not show in time, or is larger.
        """
        deadline = time.monotonic() + _SHOWS_S
        while True:
            try:
                data = read_at_most(self._folder / _ARCHIVE_FILE, most)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return data

    def remove_left(self) -> None:
        """Removes what a process 0 that was killed has left: another command holds the run now."""
        if self._folder.exists():
            self._remove(_read(self._folder / _PLACE_FILE) or "")

    def _remove(self, place: str) -> None:
        # Another run may have begun here meanwhile.
        if _read(self._folder / _PLACE_FILE) not in (None, place):
            return
        with contextlib.suppress(OSError):
            for name in (_TOKEN_FILE, _ARCHIVE_FILE, _PLACE_FILE):
                (self._folder / name).unlink(missing_ok=True)
            self._folder.rmdir()


def place_proof(place: str) -> str:
    """Returns the hash of what is written into a run directory."""
    import hashlib

    return hashlib.sha256(place.encode()).hexdigest()


def equal_everywhere() -> dict[str, str]:
    """Returns the versions that must be the same on all hosts of a run, by name."""
    return {"Python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Returns in what another host differs from this one; empty if in nothing."""
    return ", ".join(
        f"{name} {there.get(name, 'unknown')} where process 0 has {value}"
        for name, value in here.items()
        if there.get(name) != value
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _read(path: AnyPath) -> str | None:
    try:
        return read_at_most(path, _MOST_NOTE_BYTES).decode().strip() or None
    except (OSError, ValueError):
        return None


def _write_private(path: AnyPath, data: bytes) -> None:
    if "://" in str(path):
        path.write_bytes(data)  # anyone who may read the bucket may join
        return
    # Private before it has content, and put in place as a whole: no other user can read it, and no
    # host half of it.
    new = Path(f"{os.fspath(path)}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    new.replace(os.fspath(path))


MOST_GROUPS: Final = 4
"""Groups of workers that may be alive at once; each takes a port."""

_LAST = 65535
"""The highest port, whose number has 16 bits."""


class PortRange:
    """Ports that a firewall lets through; each use takes the next one that is free."""

    def __init__(self, first: int, last: int) -> None:
        """Describes the ports from `first` to `last`, both included."""
        self.first = first
        self.last = last
        self._next = first
        self._guard = threading.Lock()

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """Reads a range as people give it, such as `9000-9031`.

        Raises:
            UserError: It is no range, goes beyond the ports there are, or has fewer ports than
                groups of workers may be alive at once.
        """
        found = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
        if found is None:
            raise UserError(f"--port-range: {text!r} is no range of ports; write it as 9000-9031")
        first, last = int(found[1]), int(found[2])
        if not 1 <= first <= last <= _LAST:
            raise UserError(
                f"--port-range: {text!r}: ports go from 1 to {_LAST}, the smaller one first"
            )
        if last - first + 1 < MOST_GROUPS:
            raise UserError(
                f"--port-range: {text!r} has {last - first + 1} of the {MOST_GROUPS} ports that "
                f"are needed: up to {MOST_GROUPS} groups of workers are alive at once, and each "
                "takes one"
            )
        return cls(first, last)

    def take(self, address: str) -> int:
        """Returns a port of an address at which nothing listens, another one than the last time.

        Raises:
            UserError: Something listens at each port of the range.
        """
        with self._guard:
            for _ in range(self.first, self.last + 1):
                port = self._next
                self._next = self.first if port == self.last else port + 1
                if free_port(address, port):
                    return port
        raise UserError(
            f"none of the {self.last - self.first + 1} ports {self.first}-{self.last} of {address} "
            "is free: give another --port-range"
        )


def free_port(address: str, port: int = 0) -> int:
    """Returns a port of this machine at which nothing listens.

    Args:
        address: Where the port is listened at, as IPv4 or IPv6.
        port: The port that is wanted; 0 for any.

    Returns:
        The port; 0 if the one that is wanted is taken. Another process may take it before it is
        used.

    Raises:
        OSError: Any port will do, and none is free or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        # What a group that has ended leaves in the kernel is in nobody's way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            if not port:
                raise
            return 0
        return int(probe.getsockname()[1])
