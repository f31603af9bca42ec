"""Slurm cluster on this machine: real daemons, on one node or on the hosts of a lab."""

import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.support import namespaces
from tests.support.debian import why_not_installed

PACKAGES: Final = ("slurm-wlm", "munge")
_START_S: Final = 60.0
_ASK_S: Final = 60.0
_CONFIGURATION: Final = """\
ClusterName=ci
SlurmctldHost={head}({head_address})
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
KillWait=5
SlurmctldTimeout=10
SlurmdTimeout=20
{nodes}
PartitionName=ci Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def why_not(*, several: bool) -> str:
    """Returns why there can be no Slurm here; empty where there can, after its installation."""
    reason = namespaces.why_not() if several else ""
    return reason or why_not_installed("slurmctld", *PACKAGES)


class SlurmCluster:
    """Nodes of a cluster; as a context manager it exists only meanwhile.

    Its daemons have a key, a folder and ports of their own, so that others on this machine stay.

    Attributes:
        environment: Variables by which its clients find it.
        lab: The hosts that are its nodes; None for this machine alone.
    """

    def __init__(self, lab: namespaces.Lab | None = None) -> None:
        """Names the nodes: the hosts of a lab, or this machine alone."""
        self.lab = lab
        self._folder = Path(tempfile.mkdtemp(prefix="oblab-slurm-", dir="/run"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.environment = {**os.environ, "SLURM_CONF": str(self._folder / "slurm.conf")}

    def __enter__(self) -> Self:
        try:
            self._start_munge()
            self._start_slurm()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(60)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def names(self) -> list[str]:
        """Names of the nodes."""
        if self.lab is None:
            return [platform.node().partition(".")[0]]
        return [self.lab.host_name(host) for host in range(self.lab.size)]

    def inside(self, node: int = 0) -> list[str]:
        """Returns the words that, before a command, have it run on a node."""
        return [] if self.lab is None else self.lab.inside(node)

    def ask(self, *words: str, within_s: float = _ASK_S) -> str:
        """Runs a client on the first node, and returns what it prints."""
        done = subprocess.run(
            [*self.inside(), *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,  # a client waits for ever where a daemon has died
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def logs(self) -> str:
        """Returns the last lines of each daemon."""
        found = []
        for log in sorted(self._folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-15:]
            found += [f"{log.name}: {line}" for line in lines]
        return "\n".join(found)

    def _start_munge(self) -> None:
        """Starts the daemon that signs, which refuses to be root."""
        self._folder.chmod(0o755)
        own = self._folder / "munge"
        own.mkdir()
        (own / "key").write_bytes(os.urandom(128))
        (own / "key").chmod(0o400)
        for path in (own, own / "key"):
            shutil.chown(path, "munge", "munge")
        shutil.chown(self._folder, "munge", "munge")
        given = {
            "key-file": own / "key",
            "socket": self._folder / "munge.socket",
            "pid-file": own / "pid",
            "log-file": own / "log",
            "seed-file": own / "seed",
        }
        words = [f"--{name}={path}" for name, path in given.items()]
        self._daemon("munged", ["runuser", "-u", "munge", "--", "munged", "-F", *words])
        self._await(lambda: (self._folder / "munge.socket").exists(), "munged")

    def _start_slurm(self) -> None:
        for folder in ("state", "spool"):
            (self._folder / folder).mkdir()
        lab, names = self.lab, self.names
        addresses = [lab.address(host) for host in range(lab.size)] if lab else ["127.0.0.1"]
        nodes = "\n".join(
            f"NodeName={name} NodeAddr={address} CPUs=4 RealMemory=1000 State=UNKNOWN"
            for name, address in zip(names, addresses, strict=True)
        )
        (self._folder / "slurm.conf").write_text(
            _CONFIGURATION.format(
                folder=self._folder,
                head=names[0],
                head_address=addresses[0],
                nodes=nodes,
                controller_port=26817,
                node_port=26818,
            )
        )
        self._daemon("slurmctld", [*self.inside(), "slurmctld", "-D"])
        for node, name in enumerate(names):
            self._daemon(f"slurmd.{name}", [*self.inside(node), "slurmd", "-D", "-N", name])
        self._await(self._all_idle, "idle nodes")

    def _all_idle(self) -> bool:
        done = subprocess.run(
            [*self.inside(), "sinfo", "-h", "-N", "-o", "%T"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ASK_S,
        )
        return done.stdout.split() == ["idle"] * len(self.names)

    def _daemon(self, name: str, words: Sequence[object]) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._daemons.append(
                subprocess.Popen(
                    [str(word) for word in words],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _await(self, condition: object, what: str) -> None:
        assert callable(condition)
        deadline = time.monotonic() + _START_S
        while not condition():
            ended = [daemon.args for daemon in self._daemons if daemon.poll() is not None]
            assert not ended, f"{ended} ended while waiting for {what}:\n{self.logs()}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.logs()}"
            time.sleep(0.1)
