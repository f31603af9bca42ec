"""`orbax-bench best`: which options to take, from the records of a sweep."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import parse_size, results_console
from orbax_bench_core.exit_codes import exit_code


def best(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The run directory of a sweep.")],
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="What to make small: blocking, save, load, bytes, memory, an operation, or "
            "several with weights, such as blocking=3,load=1. By default save, or the first that "
            "was measured.",
        ),
    ] = None,
    peak_memory: Annotated[
        str | None,
        typer.Option(
            "--peak-memory",
            metavar="SIZE",
            help="Most host memory that a point may take, such as 8GiB.",
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with figures, too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show which options to take.

    It ranks the points of a sweep by the goal and says which tie with the best, what each option
    does, and which points no other beats in save, load and bytes together. What it recommends
    stands there as an entry of a suite, as code of Orbax and as the difference to what Orbax does
    by default, with the evidence and with what was not measured.

    orbax-bench best /tmp/bench --goal blocking=3,load=1 --peak-memory 8GiB

    Exit codes: 0; 1 no point can be recommended; 2 there is no sweep, or the goal was not measured.
    """
    from orbax_bench_core.analysis.best import best as choose
    from orbax_bench_core.analysis.best import best_document
    from orbax_bench_core.baselines import registry_path
    from orbax_bench_core.document import print_document, to_html
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import write_atomically

    bound = None if peak_memory is None else parse_size(peak_memory, "--peak-memory")
    target = None if html is None else registry_path(html)
    found = choose(directory, goal=goal, peak_memory=bound)
    document = best_document(found)
    if target is not None:
        try:
            write_atomically(target, to_html(document).encode())
        except OSError as failure:
            raise UserError(f"--html: cannot write {target}: {failure}") from None
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        console = results_console()
        print_document(document, console)
        if target is not None:
            console.print(f"Page: {target}", markup=False, highlight=False, soft_wrap=True)
    answered = all(case.recommendation for case in found.cases)
    raise typer.Exit(exit_code(incomplete=not answered))
