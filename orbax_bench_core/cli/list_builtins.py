"""`orbax-bench list`: the built-in benchmarks and their options."""

from __future__ import annotations

import json


def list_builtins() -> None:
    """List the built-in benchmarks and their options."""
    import docstring_parser
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from orbax_bench_core.sweep.catalog import BUILTINS
    from orbax_bench_core.sweep.classes import load_class
    from orbax_bench_core.sweep.options import describe_options

    console = Console()
    for name, path in BUILTINS.items():
        generator = load_class(path)
        about = docstring_parser.parse(generator.__doc__ or "")
        console.print(f"[bold]{name}[/]  {escape(about.short_description or '')}")
        if about.long_description:
            console.print(about.long_description, style="dim", markup=False)
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
