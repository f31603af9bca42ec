"""Migration of a class or a suite from Orbax's own framework."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.suite_files.edits import Migration
from orbax_bench_core.suite_files.moved_module import migrate_module
from orbax_bench_core.suite_files.moved_suite import migrate_suite

_SUITES: Final = (".yaml", ".yml")


def migrate(text: str, file: str) -> Migration:
    """Migrates a Python module or a suite that was written for Orbax's own framework.

    Comments and layout stay: only what has another name here is replaced.
    """
    suffix = PurePath(file).suffix
    if suffix == ".py":
        return migrate_module(text, file)
    if suffix in _SUITES:
        return migrate_suite(text, file)
    raise UserError(Problem("is neither a module (.py) nor a suite (.yaml)", file=file))
