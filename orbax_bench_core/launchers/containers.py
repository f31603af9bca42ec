"""Common ground of the places whose hosts are containers: image, run directory, suite, and end."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import signal
import threading
from collections.abc import Iterator
from typing import Final

from orbax_bench_core.config import UserError, load_suite
from orbax_bench_core.launchers.launch import Launch

_BY_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
_SHIPPED: Final = "launch"


def require_image(launch: Launch, place: str) -> str:
    """Returns the image of the hosts, which is named by its digest.

    Raises:
        UserError: There is none, or only a tag, which may name another image on the next host.
    """
    if launch.image is not None and _BY_DIGEST.fullmatch(launch.image):
        return launch.image
    given = "there is no --image" if launch.image is None else f"--image {launch.image} has none"
    raise UserError(
        f"--on {place} needs an image by digest, NAME@sha256:DIGEST, so that every host runs the "
        f"same one, and {given}; `docker inspect --format '{{{{index .RepoDigests 0}}}}' IMAGE` "
        "prints it after a push"
    )


def require_bucket(launch: Launch, place: str) -> None:
    """Checks that hosts elsewhere can reach the run directory.

    Raises:
        UserError: It is a local path.
    """
    if not launch.output_directory.startswith("gs://"):
        raise UserError(
            f"--output-directory {launch.output_directory} is local to this machine, and the hosts "
            f"of --on {place} are others; give gs://BUCKET/FOLDER"
        )


def shipped_suite(launch: Launch) -> str:
    """Returns where hosts find the suite of a launch; empty where its command names none."""
    if not launch.suite or launch.suite.startswith("gs://"):
        return launch.suite
    name = launch.suite.rpartition("/")[2]
    return f"{launch.output_directory.rstrip('/')}/{_SHIPPED}/{name}"


def with_shipped_suite(launch: Launch) -> Launch:
    """Returns a launch whose command names the suite as hosts find it."""
    there = shipped_suite(launch)
    command = tuple(there if word == launch.suite else word for word in launch.command)
    return dataclasses.replace(launch, command=command, suite=there)


def ship_suite(launch: Launch) -> None:
    """Puts the suite file into the run directory, where the hosts read it.

    Modules beside it do not travel: the image has what a suite names.

    Raises:
        UserError: The suite is invalid, or the run directory cannot be written.
    """
    from etils import epath

    there = shipped_suite(launch)
    if there == launch.suite:
        return
    text = load_suite(launch.suite).text
    try:
        path = epath.Path(there)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except (OSError, ImportError, ValueError) as error:
        raise UserError(f"cannot put the suite into {there}: {error}") from None


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Makes a request to end, as a pod gets it, an interruption, so that hosts are cleared up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
