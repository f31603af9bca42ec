"""Edits of a text by position, and what a migration makes with them."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from orbax_bench_core.errors import Problem

FRAMEWORK: Final = "orbax.checkpoint._src.testing.benchmarks"

MOVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{FRAMEWORK}.core.core": "orbax_bench_core.authoring",
        f"{FRAMEWORK}.core.metric": "orbax_bench_core.measure",
    }
)
"""Modules of the framework, and those that take their places."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Edit:
    """New text in place of that from `start` up to `end`, in characters."""

    start: int
    end: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    """Outcome of a migration of a file; nothing is written yet.

    What is left to be done by hand comes with lines; notes are on what stays as it is, and works.
    """

    file: str
    before: str
    after: str
    left: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty where there is none."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            self.file,
            self.file,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns a text with edits, none of which overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
