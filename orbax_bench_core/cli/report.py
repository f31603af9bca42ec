"""`orbax-bench report`: make every output of a run again from its records."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.exit_codes import Exit, exit_code


def report(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Note a digest of all bytes of the checkpoints that were loaded, also of those "
            "beyond 256 MiB, for `lineage --deep`.",
        ),
    ] = False,
) -> None:
    """Make every output of a run from its records again.

    Exit codes: 0 all is written; 1 it cannot be written, or files were left out, for they are not
    what their place says; 2 there is no run.
    """
    from orbax_bench_core.analysis.summary import notes_document, terminal_document
    from orbax_bench_core.cli.measurement import unwritten
    from orbax_bench_core.document import print_document
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import answer_of, limits_of, publish

    console = new_console()
    run = RunDirectory(directory)
    try:
        summary = publish(run, deep=deep)
    except OSError as failure:
        print(f"error: {unwritten(failure, 'report', str(run.root))}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    info = run.read_info()
    print_document(notes_document(info), console)
    extra = limits_of(run, info, summary)
    print_document(terminal_document(info, summary, extra, answer_of(run)), console)
    raise typer.Exit(exit_code(incomplete=bool(summary.left_out)))
