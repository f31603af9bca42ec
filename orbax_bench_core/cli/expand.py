"""`orbax-bench expand` and `list`: sweep points of a suite, and the built-in benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import Override, SuiteFile
from orbax_bench_core.cli.terminal import new_console


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
    from orbax_bench_core.document import count
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
            help="These with their options; all without them where none is given.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print them as JSON: name, class, and every option.")
    ] = False,
) -> None:
    """List the built-in benchmarks and their options."""
    import dataclasses

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
    """Returns the built-ins of these names.

    Raises:
        UserError: A name is none of them.
    """
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
    from rich.table import Table

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
        table = Table("option", "type", "default", "meaning")
        for option in describe_options(generator):
            table.add_row(
                option.name,
                option.type,
                json.dumps(option.default, default=repr),
                escape(option.meaning),
            )
        console.print(table)
    console.print("Any option may be given a list in the suite file: the list is swept.")
