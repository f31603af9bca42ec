"""Checks of a launch whose hosts are containers, which share no files with this machine."""

from __future__ import annotations

import re

from orbax_bench_core.config import UserError
from orbax_bench_core.launchers.launch import Launch

_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def require_digest(launch: Launch, place: str) -> str:
    """Returns the image of a launch.

    Raises:
        UserError: None was given, or only a tag, which may name another image on the next host.
    """
    if launch.image is not None and _DIGEST.fullmatch(launch.image):
        return launch.image
    given = "" if launch.image is None else f", got {launch.image}"
    raise UserError(
        f"--on {place} needs --image NAME@sha256:DIGEST{given}. A tag can name another image on "
        "each host, and a result that cannot be repeated; `docker push` and `crane digest` print "
        "the digest"
    )
