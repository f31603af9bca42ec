"""Running the `docker` command, and saying what is wrong when it cannot do what is asked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from orbax_bench_core.config import UserError
from orbax_bench_pipelines.image import Image, build_command, push_command


def build_image(image: Image, checkout: Path) -> None:
    """Builds an image, with docker's own output on the console.

    Args:
        image: What to build.
        checkout: The build context.

    Raises:
        UserError: Docker is missing or has no engine, the base image cannot be had, or the build
            failed.
    """
    _require_engine()
    _require_base(image)
    _run(build_command(image, checkout), f"docker could not build {image.tag}; it says why above")


def push_image(image: Image) -> None:
    """Pushes an image to the registry that its tag names.

    Raises:
        UserError: Docker could not push it.
    """
    _run(
        push_command(image),
        f"docker could not push {image.tag}; its tag must name a registry that you are logged in "
        "to, as in --tag HOST/PROJECT/orbax-bench:1",
    )


def size_of(tag: str) -> int:
    """Returns the size of an image's layers together, in bytes, those of its base included."""
    return int(_ask("image", "inspect", "--format", "{{.Size}}", tag).stdout)


def _require_engine() -> None:
    if shutil.which("docker") is None:
        raise UserError(
            "docker is not installed: `apt-get install docker.io` on Debian and Ubuntu, Docker "
            "Desktop elsewhere; without --run the commands are only printed"
        )
    answer = _ask("version", "--format", "{{.Server.Version}}")
    if answer.returncode:
        raise UserError(
            f"docker reaches no engine: {_last_line(answer.stderr)}; start one (`systemctl start "
            "docker`) or set DOCKER_HOST to one that runs"
        )


def _require_base(image: Image) -> None:
    if _ask("image", "inspect", image.base).returncode == 0:
        return
    answer = _ask("pull", image.base)
    if answer.returncode:
        raise UserError(
            f"cannot pull the base image {image.base}: {_last_line(answer.stderr)}; name another "
            "with --base-image, or make one without a registry: images/base/make.sh TAG"
        )


def _ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],  # noqa: S607 - whichever docker is first on the path
        capture_output=True,
        text=True,
        check=False,
    )


def _run(command: list[str], problem: str) -> None:
    if subprocess.run(command, check=False).returncode:
        raise UserError(problem)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it gave no reason"
