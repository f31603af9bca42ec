"""Checks of a launch whose hosts are containers, which share no files with this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.launch import Launch

_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_LABEL: Final = 63
"""Most characters of a label of the domain name system, and of a pod's name as a host name."""
_SUFFIX = "-abcde"
"""Suffix that a job appends to the names of its pods."""


def is_digest(image: str) -> bool:
    """Says whether an image is named by what is in it."""
    return _DIGEST.fullmatch(image) is not None


def require_digest(launch: Launch, place: str) -> str:
    """Returns the image of a launch.

    Raises:
        UserError: None was given, or only a tag, which may name another image on the next host.
    """
    if launch.image is not None and is_digest(launch.image):
        return launch.image
    given = "" if launch.image is None else f", got {launch.image}"
    raise UserError(
        f"--on {place} needs --image NAME@sha256:DIGEST{given}. A tag can name another image on "
        "each host, and a result that cannot be repeated; `docker push` and `crane digest` print "
        "the digest"
    )


def require_shared(
    launch: Launch, place: str, mounted: str | None = None, *, mount: str = ""
) -> None:
    """Checks that all hosts reach the run directory.

    Args:
        launch: What is launched.
        place: Name of the place, for messages.
        mounted: Path at which hosts mount a volume; None where they mount none.
        mount: The setting by which they could; empty where there is none.

    Raises:
        UserError: It is a folder of this machine.
    """
    directory = launch.output_directory
    if directory.startswith("gs://"):
        return
    if mounted is not None and Path(directory).is_relative_to(mounted):
        return
    remedy = (
        f"put it below {mounted}, where the volume is mounted"
        if mounted is not None
        else f"use gs://BUCKET/FOLDER{', or mount a volume with --set ' if mount else ''}{mount}"
    )
    raise UserError(
        f"--on {place}: the run directory {directory} is a folder of this machine, and hosts there "
        f"cannot reach it; {remedy}"
    )


def require_pod_names(name: str, replicated_job: str, *, jobs: int, pods: int) -> None:
    """Checks that the pods of a JobSet get names that are host names as well.

    Raises:
        UserError: The longest of them is too long.
    """
    longest = f"{name}-{replicated_job}-{jobs - 1}-{pods - 1}{_SUFFIX}"
    room = len(name) - len(longest) + _LABEL
    if room < len(name):
        raise UserError(
            f"--name {name}: the pod {longest} would have {len(longest)} characters, and "
            f"Kubernetes allows {_LABEL}; take a name of at most {room}"
        )
