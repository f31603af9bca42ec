"""`orbax-bench history`: past runs, and flags where they changed."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import results_console
from orbax_bench_core.exit_codes import exit_code


def history(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, patterns such as 'nightly/*', or "
            "registries of baselines; local or gs://.",
        ),
    ],
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with figures, too."),
    ] = None,
    significance: Annotated[
        float,
        typer.Option(
            help="Chance of a flag within 60 nights when nothing has changed, from 0.001 to 0.1."
        ),
    ] = 0.05,
    every: Annotated[
        bool, typer.Option("--all", help="Show operations that decide no verdict, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show past runs in the order of time, and when they changed.

    Of paired runs (`ab`) it follows the ratio to the reference arm, which holds still while the
    machine does not, and flags each change with the versions and commits before and after it. A
    flag is a question: the command that asks it, in a paired comparison of both sides, stands
    beside it. Pin the reference: an environment with exact versions. Of other runs it shows
    seconds.

    orbax-bench history nightly --html history.html

    orbax-bench history gs://bucket/nightly 'more/*'

    Exit codes: 0; 1 files were left out, for they are not what their place says.
    """
    from orbax_bench_core.analysis.history import LEAST, MOST, history_document
    from orbax_bench_core.analysis.history import history as build
    from orbax_bench_core.baselines import find_runs, registry_path
    from orbax_bench_core.document import print_document, to_html
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import write_atomically

    if not LEAST <= significance <= MOST:
        raise UserError(f"--significance: give a number from {LEAST:g} to {MOST:g}")
    target = None if html is None else registry_path(html)
    left_out: list[str] = []
    found = build(
        find_runs(places, left_out=left_out), significance=significance, left_out=left_out
    )
    document = history_document(found, every=every)
    if target is not None:
        try:
            write_atomically(target, to_html(document).encode())
        except OSError as failure:
            raise UserError(f"--html: cannot write {target}: {failure}") from None
    code = exit_code(incomplete=bool(found.left_out))
    if as_json:
        print(found.model_dump_json(indent=2))
        raise typer.Exit(code)
    console = results_console()
    print_document(document, console)
    if target is not None:
        console.print(f"Page: {target}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)
