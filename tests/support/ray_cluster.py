"""Ray cluster on the hosts of a lab: real daemons, with Ray in a folder of its own."""

import functools
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, Self

from tests.support import namespaces
from tests.support.processes import plain_environment

_VERSION: Final = "2.60.0"
_PORT: Final = 6399
_INSTALL_S: Final = 600.0
_START_S: Final = 120.0
_TRIES: Final = 4
_CACHE: Final = Path(tempfile.gettempdir()) / f"orbax-bench-tests-ray-{_VERSION}"


@functools.cache
def why_not_installed() -> str:
    """Returns why Ray cannot be had here; empty once it is there.

    Everything that it depends on is in the environment of the tests already.
    """
    if (_CACHE / "ray").exists():
        return ""
    with tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder:
        words = ("pip", "install", "--quiet", "--no-deps", "--target", folder, f"ray=={_VERSION}")
        done = subprocess.run(
            [sys.executable, "-m", "uv", *words, "--python", sys.executable],
            capture_output=True,
            text=True,
            check=False,
            timeout=_INSTALL_S,
        )
        if done.returncode:
            return f"uv cannot install ray {_VERSION}: {done.stderr.strip()[-200:]}"
        shutil.copytree(folder, _CACHE, dirs_exist_ok=True)
    return ""


class RayCluster:
    """Nodes of a cluster, which are started one by one on the hosts of a lab.

    As a context manager it ends all that runs on them.

    Attributes:
        lab: The hosts; all that runs on them ends with the lab.
        address: Where drivers find it.
        environment: Variables with which Ray can be imported.
    """

    def __init__(self, lab: namespaces.Lab) -> None:
        self.lab = lab
        self.address = f"{lab.address(0)}:{_PORT}"
        # Sockets have short paths.
        self._folder = Path(tempfile.mkdtemp(prefix="obr", dir="/tmp"))
        self.environment = plain_environment(
            PYTHONPATH=str(_CACHE),
            RAY_USAGE_STATS_ENABLED="0",
            TPU_NAME="s",  # of the slice that a node may say that it belongs to
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in range(self.lab.size):
            self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, node: int, *options: str) -> None:
        """Starts the daemons of a node, again where the machine is too busy for Ray's 30 s."""
        why = ""
        for _ in range(_TRIES):
            try:
                done = self._try_to_start(node, *options)
            except subprocess.TimeoutExpired as late:
                why = str(late)
            else:
                if done.returncode == 0:
                    return
                why = done.stdout + done.stderr
            self.kill(node)
        raise AssertionError(why)

    def _try_to_start(self, node: int, *options: str) -> subprocess.CompletedProcess[str]:
        place: tuple[str, ...] = ("--address", self.address)
        if node == 0:
            place = ("--head", "--port", str(_PORT), "--include-dashboard=false")
            place += ("--temp-dir", str(self._folder))
        return subprocess.run(
            [
                *self.lab.inside(node),
                *(sys.executable, "-m", "ray.scripts.scripts", "start", *place),
                *("--node-ip-address", self.lab.address(node), "--num-cpus", "1"),
                *("--object-store-memory", str(100 * 2**20), "--disable-usage-stats"),
                *options,
            ],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_START_S,
        )

    def kill(self, node: int) -> None:
        """Ends all that runs on a node, at once."""
        self.lab.signal(node, signal.SIGKILL)
