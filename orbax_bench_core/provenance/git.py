"""Git: answers about a repository on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from pathlib import Path
from typing import Final

_SECONDS: Final = 20
"""A repository may lie on a slow file system; nothing waits longer for what is only noted."""
_OF_ANOTHER: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables by which a hook of one repository would have it answer for another."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer of git, or why there is none.

    Attributes:
        ok: Whether it answered.
        text: What it said, without the last line break; empty when it did not.
        digest: SHA-256 of all bytes that it said, in hex.
        reason: Why it did not answer, in one line; empty when it did.
    """

    ok: bool
    text: str = ""
    digest: str = ""
    reason: str = ""


def ask(directory: Path, *arguments: str) -> Answer:
    """Asks git about the repository of a directory; that it is absent is an answer too.

    Nothing is written into the repository, the index included.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    try:
        process = subprocess.run(
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - wherever git is installed
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return Answer(ok=False, reason="git is not installed")
    except subprocess.TimeoutExpired:
        return Answer(ok=False, reason=f"git took more than {_SECONDS} s")
    except OSError as error:
        return Answer(ok=False, reason=f"git cannot be run: {error.strerror}")
    if process.returncode != 0:
        said = process.stderr.decode(errors="replace").strip().splitlines()
        return Answer(ok=False, reason=said[0] if said else f"git ended with {process.returncode}")
    return Answer(
        ok=True,
        text=process.stdout.decode(errors="replace").rstrip("\n"),
        digest=hashlib.sha256(process.stdout).hexdigest(),
    )
