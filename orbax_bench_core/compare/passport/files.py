"""Where noise passports are kept."""

from __future__ import annotations

import os
from pathlib import Path

from orbax_bench_core.compare.passport.model import Passport
from orbax_bench_core.compare.registry.files import read_model, registry_path
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.records.files import write_atomically


def save(passport: Passport, path: str) -> None:
    """Writes a passport.

    Raises:
        SuiteError: The path cannot be honoured or written.
    """
    try:
        write_atomically(registry_path(path), passport.model_dump_json(indent=1).encode())
    except OSError as error:
        raise SuiteError(f"cannot write the passport: {error}") from None


def load(path: str) -> Passport:
    """Reads a passport.

    Raises:
        SuiteError: There is none, or it is not one of this version.
    """
    file = registry_path(path)
    if not file.exists():
        raise SuiteError(
            f"there is no noise passport at {file}; write one with `orbax-bench calibrate DIR "
            f"--save {file}`"
        )
    return read_model(file, Passport, "noise passport")


def find(path: str | None) -> Passport | None:
    """Returns the passport that is named, or the user's own, or None when there is neither.

    Args:
        path: A file; None takes `default_path` if it exists.

    Raises:
        SuiteError: The named one does not exist, or is none.
    """
    if path is not None:
        return load(path)
    own = default_path()
    return load(str(own)) if own.exists() else None


def default_path() -> Path:
    """Returns where a passport is looked for when none is named, below the user's cache."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "orbax-bench" / "passport.json"
