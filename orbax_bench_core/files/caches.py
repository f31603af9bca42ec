"""Cache of the user: what this product keeps between runs lies below it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PASSPORT: Final = "passport.json"
"""Noise of this machine, as the user has measured it."""


def user_cache(name: str) -> Path:
    """Returns a path below `$XDG_CACHE_HOME/orbax-bench`, or else `~/.cache/orbax-bench`."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "orbax-bench" / name
