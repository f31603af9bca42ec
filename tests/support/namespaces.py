"""Lab of hosts on one machine: network namespaces with own addresses, host names and links.

`python -m tests.support.namespaces up 3` makes the hosts ob0, ob1 and ob2, `exec ob1 COMMAND ...`
runs a command on one of them, `down` ends what runs there and takes all of it away. Processes and
files are shared, so that one can look and kill from outside; the network of the machine itself is
not touched. It needs root.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import psutil

_MARK: Final = "oblab-"
_NETNS: Final = Path("/run/netns")
_FOLDERS: Final = Path("/run")
_END_S: Final = 60.0
_ENTER: Final = """
hostname "$1"; mount --bind "$2" /etc/hosts; shift 2
while [ "$1" != -- ]; do mount --bind "$1" "$2" || exit 125; shift 2; done
shift; exec "$@"
"""


def why_not() -> str:
    """Returns why there can be no lab here; empty where there can."""
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"network namespaces need {' and '.join(missing)} (Debian: iproute2, util-linux)"
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, text=True, check=False)
    return f"`unshare -n true` fails: {tried.stderr.strip()}" if tried.returncode else ""


class Lab:
    """Hosts ob0, ob1, ... behind one switch; as a context manager it exists only meanwhile.

    Attributes:
        size: How many hosts there are.
    """

    def __init__(self, size: int, name: str | None = None) -> None:
        """Names a lab.

        Args:
            size: How many hosts.
            name: Tells it from other labs of this machine. One that is a number is the id of the
                process that owns the lab, which is taken away once that has ended; None means
                this process.
        """
        self.size = size
        self._prefix = f"{_MARK}{os.getpid() if name is None else name}"
        self._folder = _FOLDERS / self._prefix

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @staticmethod
    def host_name(host: int) -> str:
        """Returns the name by which a host knows itself, and the others know it."""
        return f"ob{host}"

    @staticmethod
    def address(host: int) -> str:
        """Returns the address of a host, which all hosts of its lab reach."""
        return f"10.77.0.{10 + host}"

    def up(self) -> None:
        """Makes the hosts again, and takes away labs whose owners have ended."""
        _sweep()
        self.down()
        self._folder.mkdir(parents=True)
        names = [f"{self.address(host)} {self.host_name(host)}" for host in range(self.size)]
        (self._folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
        switch = self._space("sw")
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for host in range(self.size):
            space = self._space(self.host_name(host))
            _ip("netns", "add", space)
            # Neither end is ever in the namespace of the machine, so no name can be taken there.
            ends = ("type", "veth", "peer", "name", f"port{host}", "netns", switch)
            _ip("link", "add", "net0", "netns", space, *ends)
            _ip("-n", switch, "link", "set", f"port{host}", "master", "switch")
            _ip("-n", space, "addr", "add", f"{self.address(host)}/24", "dev", "net0")
            for where, device in ((switch, f"port{host}"), (space, "net0"), (space, "lo")):
                _ip("-n", where, "link", "set", device, "up")

    def down(self) -> None:
        """Ends everything that runs on the hosts, and takes them away."""
        _take_away(self._prefix)

    def inside(self, host: int, own: Mapping[Path, Path] | None = None) -> list[str]:
        """Returns the words that, before a command, have it run on a host, with the same pid.

        Args:
            host: Which host.
            own: Folders of which this host sees another one: the path, and the folder there.
        """
        binds = [str(path) for seen, real in (own or {}).items() for path in (real, seen)]
        name = self.host_name(host)
        return [
            # `ip netns exec` would hide the control groups, without which daemons do not start.
            *("nsenter", f"--net={_NETNS / self._space(name)}", "unshare", "-u", "-m"),
            *("bash", "-c", _ENTER, "bash", name, str(self._folder / "hosts"), *binds, "--"),
        ]

    def cut(self, host: int) -> None:
        """Pulls the cable of a host."""
        _ip("-n", self._space("sw"), "link", "set", f"port{host}", "down")

    def mend(self, host: int) -> None:
        """Plugs the cable of a host in again, at full speed."""
        _ip("-n", self._space("sw"), "link", "set", f"port{host}", "up")
        for where, device in self._link(host):
            subprocess.run(
                ["tc", "-n", where, "qdisc", "del", "dev", device, "root"],
                capture_output=True,
                check=False,
            )

    def slow(self, host: int, kbit_per_s: int) -> None:
        """Lets no more than that through the cable of a host, in each direction."""
        for where, device in self._link(host):
            limit = ("rate", f"{kbit_per_s}kbit", "burst", "8kb", "latency", "800ms")
            _run("tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", *limit)

    def sent_slowly(self, host: int) -> int:
        """Returns the bytes that a host has sent since its cable became slow."""
        where, device = self._link(host)[0]
        shown = _run("tc", "-n", where, "-s", "qdisc", "show", "dev", device)
        found = re.search(r"Sent (\d+) bytes", shown)
        return int(found[1]) if found else 0

    def processes(self, host: int | None = None) -> list[psutil.Process]:
        """Returns all that runs on a host, or on any."""
        hosts = range(self.size) if host is None else (host,)
        spaces = [self._space(self.host_name(one)) for one in hosts]
        return [process for space in spaces for process in _processes(space)]

    def signal(self, host: int, signal_: signal.Signals) -> None:
        """Sends a signal to all that runs on a host."""
        for process in self.processes(host):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal_)

    def _link(self, host: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Returns both ends of the cable of a host, that at the host first."""
        return (
            (self._space(self.host_name(host)), "net0"),
            (self._space("sw"), f"port{host}"),
        )

    def _space(self, what: str) -> str:
        return f"{self._prefix}-{what}"


def _sweep() -> None:
    """Takes away labs whose owners were killed."""
    found = {_prefix(path.name) for path in _NETNS.glob(f"{_MARK}*-*")}
    found |= {path.name for path in _FOLDERS.glob(f"{_MARK}*")}
    for prefix in found:
        owner = prefix.removeprefix(_MARK)
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            _take_away(prefix)


def _take_away(prefix: str) -> None:
    spaces = [path.name for path in _NETNS.glob(f"{prefix}-*") if _prefix(path.name) == prefix]
    deadline = time.monotonic() + _END_S
    while left := [process for space in spaces for process in _processes(space)]:
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > deadline:
            raise TimeoutError(f"these of {prefix} do not end: {left}")
        time.sleep(0.02)
    for space in spaces:
        # Another process may take the same lab away.
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
    shutil.rmtree(_FOLDERS / prefix, ignore_errors=True)


def _prefix(space: str) -> str:
    return space.rpartition("-")[0]


def _processes(space: str) -> list[psutil.Process]:
    listed = subprocess.run(
        ["ip", "netns", "pids", space], capture_output=True, text=True, check=False
    )
    found = []
    for pid in listed.stdout.split():
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(int(pid)))
    return found


def _ip(*words: str) -> str:
    return _run("ip", *words)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.namespaces", description=__doc__)
    parser.add_argument(
        "--name", default=str(os.getppid()), help="which lab; default: that of this shell"
    )
    doing = parser.add_subparsers(dest="what", required=True)
    doing.add_parser("up", help="make hosts").add_argument("size", type=int, nargs="?", default=3)
    doing.add_parser("down", help="end what runs on them and take them away")
    on = doing.add_parser("exec", help="run a command on one")
    on.add_argument("host", help="ob0, ob1, ...")
    on.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if reason := why_not():
        parser.exit(1, f"{reason}\n")
    lab = Lab(getattr(options, "size", 0), options.name)
    if options.what == "exec":
        words = [*lab.inside(int(options.host.removeprefix("ob"))), *options.command]
        os.execvp(words[0], words)
    lab.up() if options.what == "up" else lab.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
