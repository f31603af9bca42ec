"""Which release of Orbax is installed here."""

from __future__ import annotations

import functools
import importlib.metadata
import re


def is_at_least(release: str) -> bool:
    """Says whether the installed Orbax is `release` or later; `1.2.3.dev4` counts as `1.2.3`."""
    return _numbers(_installed()) >= _numbers(release)


def lacks(setting: str, release: str) -> str:
    """Says that a setting needs a later Orbax than the one that is installed.

    Args:
        setting: As a suite file has it.
        release: The first release that has it.
    """
    return f"{setting} needs orbax-checkpoint >= {release}; this environment has {_installed()}"


@functools.cache
def _installed() -> str:
    return importlib.metadata.version("orbax-checkpoint")


@functools.cache
def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
