"""`orbax-bench migrate`: move classes and suites of Orbax's own framework over."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from orbax_bench_core.exit_codes import exit_code


def migrate(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Modules (.py) and suites (.yaml), on this disk."),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Change the files; otherwise the change is printed.")
    ] = False,
) -> None:
    """Move classes and suites of Orbax's own framework over.

    Of a module the imports change, by whatever name it has them, and of a suite the generators;
    comments and layout stay. It prints the change as a diff, and what it leaves to you, with lines.

    orbax-bench migrate my_benchmark.py my_suite.yaml --write

    Exit codes: 0 nothing is left to do; 1 what was printed as left has to be changed by hand; 2 a
    file cannot be read.
    """
    from pathlib import Path

    from orbax_bench_core.errors import Problem, UserError
    from orbax_bench_core.files import read_at_most
    from orbax_bench_core.suite_files import migrate as migrated

    found = []
    for file in files:
        try:
            text = read_at_most(file).decode()
        except UnicodeDecodeError:
            raise UserError(Problem("is no text file", file=file)) from None
        except FileNotFoundError:
            said = "there is no such file; give Python files and suites"
            raise UserError(Problem(said, file=file)) from None
        except IsADirectoryError:
            said = f"a folder; give the files in it, such as {file}/*.py"
            raise UserError(Problem(said, file=file)) from None
        found.append(migrated(text, file))
    for migration in found:
        if write and migration.after != migration.before:
            Path(migration.file).write_bytes(migration.after.encode())  # its mode and links stay
            print(f"{migration.file}: changed")
        elif migration.after == migration.before:
            print(f"{migration.file}: nothing to change")
        else:
            print(migration.diff, end="")
        for problem in migration.notes:
            print(f"note: {problem}", file=sys.stderr)
        for problem in migration.left:
            print(f"left: {problem}", file=sys.stderr)
    if not write and any(migration.after != migration.before for migration in found):
        print("Nothing is written yet: --write does it.", file=sys.stderr)
    left = any(migration.left for migration in found)
    raise typer.Exit(exit_code(incomplete=left))
