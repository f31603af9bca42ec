"""Cloud TPU VMs: the hosts of a slice as virtual machines, reached by gcloud's ssh."""

import shlex
from typing import Final

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.launch import Launch, call, options, require_client
from orbax_bench_core.launchers.shipping import require_shared, shipment

_NO_CLIENT: Final = (
    "install the Google Cloud command line, https://cloud.google.com/sdk, or run what --dry-run "
    "prints where it is"
)
_SCRIPT: Final = """\
export ORBAX_BENCH_CLUSTER=tpu-vm ORBAX_BENCH_NUM_HOSTS={hosts}
: > {log}
nohup {command} >> {log} 2>&1 < /dev/null &
echo "$!" > {pid}
tail -n +1 --pid="$!" -f {log}
wait "$!"
"""
"""Program of every host, in bash. The command asks the metadata server for its place itself; it
goes on where the connection breaks."""


class TpuVmSettings(ConfigModel):
    """Settings of a run on Cloud TPU VMs, which docs/launch/tpu-vm.md explains."""

    tpu_name: str
    zone: str
    project: str | None = None
    program: str = "orbax-bench"
    mounted: str | None = None
    internal_ip: bool = False
    suite_on_hosts: str | None = None


class TpuVm:
    """Starts the command on all hosts by ssh; the token is a file in the run directory."""

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
        self._shipment = shipment(
            launch, in_image=settings.suite_on_hosts, mounted=settings.mounted
        )

    def shown(self) -> str:
        """Returns the commands."""
        return "\n".join((f"# {self._shipment.said}", *map(shlex.join, (self._run, self._end))))

    def start(self) -> int:
        """Sends the suite, runs the command on all hosts, and ends what still runs.

        Returns:
            The exit code of `gcloud`.

        Raises:
            UserError: The client `gcloud` is not installed here.
        """
        require_client("gcloud", _NO_CLIENT)
        self._shipment.send()
        try:
            return call(self._run)
        finally:
            call(self._end)

    @property
    def script(self) -> str:
        """What every host runs, in bash."""
        return _SCRIPT.format(
            hosts=self._launch.hosts,
            log=self._file("log"),
            pid=self._file("pid"),
            command=shlex.join((self._settings.program, *self._shipment.command[1:])),
        )

    @property
    def _run(self) -> list[str]:
        return self._ssh(f"bash -c {shlex.quote(self.script)}")

    @property
    def _end(self) -> list[str]:
        pid = self._file("pid")
        return self._ssh(f"kill $(cat {pid}) 2> /dev/null; rm -f {pid}")

    def _ssh(self, command: str) -> list[str]:
        settings = self._settings
        ssh = ["gcloud", "compute", "tpus", "tpu-vm", "ssh", settings.tpu_name]
        ssh += options({"--zone": settings.zone, "--project": settings.project})
        ssh += ["--internal-ip"] if settings.internal_ip else []
        return [*ssh, "--worker=all", "--batch-size=all", "--command", command]

    def _file(self, kind: str) -> str:
        """Returns a file in the user's home folder on each host."""
        return f"./.{self._launch.name}.{kind}"
