"""Cloud TPU VMs: the hosts of a slice as virtual machines, reached by gcloud's ssh."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import TOKEN
from orbax_bench_core.launchers.containers import require_shared
from orbax_bench_core.launchers.launch import Launch, call, options, require_client
from orbax_bench_core.launchers.shipping import shipment

_NO_CLIENT: Final = (
    "install the Google Cloud command line, https://cloud.google.com/sdk, or run what --dry-run "
    "prints where it is"
)
_SCRIPT: Final = """\
set -u
{TOKEN}=$(cat {token}) || exit 75
rm -f {token}
export {TOKEN} ORBAX_BENCH_CLUSTER=tpu-vm ORBAX_BENCH_NUM_HOSTS={hosts}
: > {log}
nohup {command} >> {log} 2>&1 < /dev/null &
run=$!
echo "$run" > {pid}
tail -n +1 --pid="$run" -f {log}
wait "$run"
"""
"""Program of every host, in bash. The token is read from a file of this user, which is removed. The
command asks the metadata server for its place itself."""


class TpuVmSettings(ConfigModel):
    """Settings of a run on Cloud TPU VMs.

    Attributes:
        tpu_name: Name of the TPU VM, which exists.
        zone: Its zone.
        project: Its project; by default that of gcloud.
        program: Path of `orbax-bench` on its hosts.
        mounted: Path at which its hosts mount one file system, for a run directory that is not in
            a bucket.
        internal_ip: Whether to connect to internal addresses.
        suite_on_hosts: Path of the suite on its hosts; otherwise the one of this machine is sent.
    """

    tpu_name: str
    zone: str
    project: str | None = None
    program: str = "orbax-bench"
    mounted: str | None = None
    internal_ip: bool = False
    suite_on_hosts: str | None = None


class TpuVm:
    """Starts the command on all hosts by ssh, with a token that goes there as a file."""

    def __init__(self, launch: Launch, settings: TpuVmSettings) -> None:
        """Checks what is to be started."""
        if launch.tpu is None or launch.slices > 1:
            raise UserError("--on tpu-vm needs --tpu TYPE:TOPOLOGY, and is for one slice")
        if launch.image is not None:
            raise UserError(
                "--on tpu-vm runs what is installed on the hosts: leave --image out, and install "
                "orbax-bench[tpu,gcs] there"
            )
        require_shared(launch, "tpu-vm", settings.mounted, mount="mounted=PATH")
        self._launch = launch
        self._settings = settings
        self._shipment = shipment(launch, in_image=settings.suite_on_hosts)

    def shown(self) -> str:
        """Returns the commands; FILE is one with the token, which this user alone can read."""
        lines = [
            shlex.join(words) for words in (self._prepare, self._copy("FILE"), self._run, self._end)
        ]
        return "\n".join((f"# {self._shipment.said}", *lines))

    def start(self) -> int:
        """Copies the token, runs the command on all hosts, and ends what still runs."""
        require_client("gcloud", _NO_CLIENT)
        self._shipment.send()
        with _token_file() as token:
            code = call(self._prepare) or call(self._copy(token))
        if code:
            return code
        try:
            return call(self._run)
        finally:
            call(self._end)

    @property
    def script(self) -> str:
        """What every host runs, in bash."""
        command = (self._settings.program, *self._shipment.command[1:])
        return _SCRIPT.format(
            TOKEN=TOKEN,
            hosts=self._launch.hosts,
            token=self._file("token"),
            log=self._file("log"),
            pid=self._file("pid"),
            command=shlex.join(command),
        )

    @property
    def _prepare(self) -> list[str]:
        """Makes the file before the token is in it: a copy keeps the rights of what is there."""
        token = self._file("token")
        return self._ssh(f"rm -f {token}; (umask 077 && : > {token})")

    def _copy(self, token: str) -> list[str]:
        target = f"{self._settings.tpu_name}:{self._file('token')}"
        return ["gcloud", "compute", "tpus", "tpu-vm", "scp", token, target, *self._where()]

    @property
    def _run(self) -> list[str]:
        return self._ssh(f"bash -c {shlex.quote(self.script)}")

    @property
    def _end(self) -> list[str]:
        pid, token = self._file("pid"), self._file("token")
        return self._ssh(f"kill $(cat {pid}) 2> /dev/null; rm -f {pid} {token}")

    def _ssh(self, command: str) -> list[str]:
        ssh = ("gcloud", "compute", "tpus", "tpu-vm", "ssh", self._settings.tpu_name)
        return [*ssh, *self._where(), "--batch-size=all", "--command", command]

    def _where(self) -> list[str]:
        settings = self._settings
        where = ["--zone", settings.zone, "--worker=all", *options({"--project": settings.project})]
        return [*where, "--internal-ip"] if settings.internal_ip else where

    def _file(self, kind: str) -> str:
        """Returns a file in the user's home folder on each host, as scp and a shell name it."""
        return f"./.{self._launch.name}.{kind}"


@contextlib.contextmanager
def _token_file() -> Iterator[str]:
    """Yields the name of a file with a token that this user alone can read."""
    descriptor, name = tempfile.mkstemp(prefix="orbax-bench-token-")  # with rights 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
        yield name
    finally:
        Path(name).unlink()
