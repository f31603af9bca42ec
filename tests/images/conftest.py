"""An engine of Docker, a base image and our image on it, all made here and gone afterwards.

On a Debian machine, as root, what is missing is installed: docker.io and debootstrap. Where that
cannot be, the tests are skipped and say why.
"""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.debian import why_not_installed

ROOT = Path(__file__).parents[2]
NEEDED_BYTES = 8 * 10**9
STARTED_IN_S = 60


@pytest.fixture(scope="session")
def docker_environment():
    """The environment in which `docker` reaches an engine; one is started if none runs."""
    environment = dict(os.environ)
    if shutil.which("docker") and _answers(environment):
        yield environment
        return
    if os.geteuid() != 0:
        pytest.skip("no engine of Docker runs here, and only root could start one")
    _need("dockerd", "docker.io")
    # A short path: the name of a socket may have 108 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="orbax-bench-docker-"))
    try:
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            pytest.skip(f"an engine of Docker needs {NEEDED_BYTES / 1e9:.0f} GB in {folder}")
        environment["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
        with _engine(folder, environment):
            yield environment
    finally:
        subprocess.run(["rm", "-rf", folder], check=False)  # a hundred thousand files


@pytest.fixture(scope="session")
def base_image(docker_environment):
    """A base image with Python, made without a registry."""
    if os.geteuid() != 0:
        pytest.skip("only root can unpack a Debian system for the base image")
    _need("debootstrap", "debootstrap")
    tag = "orbax-bench-base:test"
    done = _run([ROOT / "images/base/make.sh", tag], docker_environment)
    if done.returncode:
        pytest.skip(f"no base image could be made: {_last_line(done.stderr)}")
    return tag


@dataclasses.dataclass(frozen=True)
class Built:
    """Our image for the CPU.

    Attributes:
        tag: Its name.
        said: What the command that built it printed.
        commits: The commits that were checked out before and after: somebody may commit meanwhile.
    """

    tag: str
    said: str
    commits: frozenset[str]


@pytest.fixture(scope="session")
def built(docker_environment, base_image):
    """Our image for the CPU, built by `images/build.py`: by buildx where there is one."""
    tag = "orbax-bench:test"
    before = _head()
    done = _run(
        [
            *(sys.executable, ROOT / "images/build.py"),
            *("--base-image", base_image, "--tag", tag),
        ],
        docker_environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Built(tag, done.stdout, frozenset({before, _head()}))


@pytest.fixture(scope="session")
def image(built):
    """The name of our image for the CPU."""
    return built.tag


def _head():
    """The commit that is checked out; `unknown` where git does not know."""
    return _run(["git", "-C", ROOT, "rev-parse", "HEAD"], os.environ).stdout.strip() or "unknown"


def _need(program, package):
    why = why_not_installed(program, package)
    if why:
        pytest.skip(why)


@contextlib.contextmanager
def _engine(folder, environment):
    log = folder / "log"
    with log.open("wb") as output:
        engine = subprocess.Popen(
            [
                *("dockerd", "--host", environment["DOCKER_HOST"]),
                *("--data-root", folder / "data", "--exec-root", folder / "exec"),
                *("--pidfile", folder / "pid"),
            ],
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + STARTED_IN_S
        while not _answers(environment):
            if engine.poll() is not None or time.monotonic() > deadline:
                why = " ".join(log.read_text().split())[-300:]
                pytest.skip(f"dockerd does not start here: ...{why}")
            time.sleep(0.1)
        yield
    finally:
        engine.terminate()
        engine.wait()


def _answers(environment):
    return _run(["docker", "version"], environment).returncode == 0


def _run(command, environment):
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _last_line(text):
    return (text.strip().splitlines() or ["it gave no reason"])[-1]
