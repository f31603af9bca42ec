"""Migration of a class or a suite from Orbax's own framework: edits of a text by position."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

from orbax_bench_core.config import Problem, UserError

FRAMEWORK: Final = "orbax.checkpoint._src.testing.benchmarks"

MOVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{FRAMEWORK}.core.core": "orbax_bench_core.authoring",
        f"{FRAMEWORK}.core.metric": "orbax_bench_core.measure",
    }
)
"""Modules of the framework, and those that take their places."""

_SUITES: Final = (".yaml", ".yml")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Edit:
    """New text in place of that from `start` up to `end`, in characters."""

    start: int
    end: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    """Outcome of a migration; nothing is written yet.

    Attributes:
        file: The file.
        before: Its text.
        after: Its text as it would be.
        left: What is left to be done by hand, with lines.
        notes: What stays as it is, and works.
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


def migrate(text: str, file: str) -> Migration:
    """Migrates a Python module or a suite that was written for Orbax's own framework.

    Comments and layout stay: only what has another name here is replaced.

    Args:
        text: Its content.
        file: Its name, whose end says which of both it is.

    Raises:
        UserError: It is neither, or cannot be read.
    """
    suffix = PurePath(file).suffix
    if suffix == ".py":
        from orbax_bench_core.suite_files.moved_module import migrate_module

        return migrate_module(text, file)
    if suffix in _SUITES:
        from orbax_bench_core.suite_files.moved_suite import migrate_suite

        return migrate_suite(text, file)
    raise UserError(Problem("is neither a module (.py) nor a suite (.yaml)", file=file))


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns a text with edits, none of which overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
