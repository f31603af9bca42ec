"""Commands on suites and benchmarks: `expand`, `list` and `migrate`."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import Override, SuiteFile
from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.exit_codes import exit_code


def expand(
    suite: SuiteFile,
    override: Override = None,
    no_import: Annotated[
        bool,
        typer.Option(
            "--no-import",
            help="Refuse a suite whose classes would have to be imported, which runs their code.",
        ),
    ] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print each point in full, as one line of JSON.")
    ] = False,
) -> None:
    """List the sweep points of a suite without running anything."""
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.pages import count
    from orbax_bench_core.sweep import expand as expand_suite

    loaded = load_suite(suite, override or ())
    expansion = expand_suite(loaded, imports=not no_import)
    if json_lines:
        for point in expansion.points:
            print(f'{{"id":"{point.id}",{point.model_dump_json()[1:]}')
        return
    for point in expansion.points:
        print(f"{point.id}  {point.name}")
    for skip in expansion.skipped:
        print(f"skipped: {skip.point.name}: {skip.reason}")
    for note in expansion.notes:
        print(f"note: {note}")
    arms = loaded.suite.arms
    if arms is not None:
        print(f"baseline: {arms.baseline}")
        print(f"candidate: {arms.candidate}")
    in_arms = "" if arms is None else ", each in both arms"
    print(f"{count(len(expansion.points), 'point')}{in_arms}")


def list_builtins(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="These, with their options; by default all, without options.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print them as JSON: name, class, and every option.")
    ] = False,
    orbax: Annotated[
        bool,
        typer.Option(
            "--orbax",
            help="List instead the options and functions of the installed Orbax, each with the "
            "benchmarks that measure it.",
        ),
    ] = False,
) -> None:
    """List the built-in benchmarks and their options."""
    import dataclasses

    if orbax:
        _show_orbax(names, as_json=as_json)
        return

    from orbax_bench_core.sweep import BUILTINS, describe_options, load_class

    chosen = _chosen(names or list(BUILTINS), BUILTINS)
    if not as_json:
        (_show if names else _show_all)(chosen)
        return
    found = [
        {
            "name": name,
            "class": path,
            "options": [
                dataclasses.asdict(option) for option in describe_options(load_class(path))
            ],
        }
        for name, path in chosen.items()
    ]
    print(json.dumps(found, indent=2, default=repr))


def _chosen(names: Sequence[str], builtins: Mapping[str, str]) -> dict[str, str]:
    from orbax_bench_core.errors import UserError, did_you_mean

    for name in names:
        if name not in builtins:
            raise UserError(
                f"there is no built-in benchmark {name!r}; {did_you_mean(name, builtins)}"
            )
    return {name: builtins[name] for name in names}


def _show_all(builtins: Mapping[str, str]) -> None:
    """Prints what each measures, in a line or two."""
    import docstring_parser
    from rich.markup import escape
    from rich.table import Table

    from orbax_bench_core.sweep import load_class

    console = new_console()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, path in builtins.items():
        about = docstring_parser.parse(load_class(path).__doc__ or "")
        table.add_row(name, escape(about.short_description or ""))
    console.print(table)
    console.print("\n`orbax-bench list NAME` shows its options, `--json` those of all.")


def _show(builtins: Mapping[str, str]) -> None:
    import docstring_parser
    from rich.markup import escape
    from rich.padding import Padding

    from orbax_bench_core.sweep import describe_options, load_class

    console = new_console()
    for name, path in builtins.items():
        generator = load_class(path)
        about = docstring_parser.parse(generator.__doc__ or "")
        console.print(f"[bold]{name}[/]  {escape(about.short_description or '')}")
        if about.long_description:
            paragraphs = re.split(r"\n\s*\n", about.long_description)
            for paragraph in paragraphs:  # lines end where the terminal does, not the source
                console.print(" ".join(paragraph.split()), style="dim", markup=False)
        for option in describe_options(generator):  # in a table a long name would be cut
            default = escape(json.dumps(option.default, default=repr))
            console.print(f"[bold]{option.name}[/]: {escape(option.type)}, by default {default}")
            console.print(Padding(escape(option.meaning), (0, 0, 0, 4)))
    console.print("Any option may be given a list in the suite file: the list is swept.")


def _show_orbax(names: Sequence[str] | None, *, as_json: bool) -> None:
    """Prints what the installed Orbax offers, in groups, with what measures it."""
    import dataclasses
    import itertools
    import textwrap

    from orbax_bench_core.errors import UserError
    from orbax_bench_core.pages import count
    from orbax_bench_core.suite_files import orbax_coverage

    if names:
        given = " ".join(names)
        raise UserError(f"--orbax lists all options of Orbax; leave it or {given!r} out")
    found = orbax_coverage()
    if as_json:
        print(json.dumps(dataclasses.asdict(found), indent=2))
        return
    width = new_console().width
    for group, names_of_it in itertools.groupby(found.names, lambda one: one.group):
        print(group)
        for one in names_of_it:
            named = one.name if one.default is None else f"{one.name} = {one.default}"
            print(textwrap.fill(named, width, initial_indent="  ", subsequent_indent="      "))
            by: dict[str, list[str]] = {}
            for benchmark, _, option in (each.partition(".") for each in one.measured_by):
                by.setdefault(option, []).append(benchmark)
            said = [
                f"{option} of {', '.join(users)}" if option else ", ".join(users)
                for option, users in by.items()
            ]
            text = "; ".join(said) or ": ".join(filter(None, ("none", one.reason)))
            print(textwrap.fill(text, width, initial_indent="      ", subsequent_indent="      "))
    without = sum(not one.measured_by for one in found.names)
    unknown = sum(one.is_open for one in found.names)
    print(f"\norbax-checkpoint {found.release}: {count(len(found.names), 'name')}")
    print(f"{without} without a benchmark, {unknown} of them without a reason.")


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

    In a module the imports change, whatever their names, and in a suite the generators; comments
    and layout stay. It prints the change as a diff, and the lines that you have to change yourself.

    orbax-bench migrate my_benchmark.py my_suite.yaml --write

    Exit codes: 0 nothing is left to do; 1 you have to change the printed lines by hand; 2 a file
    cannot be read.
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
            raise UserError(Problem("is not a text file", file=file)) from None
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
