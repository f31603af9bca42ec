"""Command that accepts a known regression."""

from typing import Annotated

import typer

from orbax_bench_core.cli.terminal import show


def accept(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="The folder of the nights, local or gs://, or one run directory in it.",
        ),
    ],
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The name of the suite.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why it is accepted; shown wherever it is named.")
    ],
) -> None:
    """Accept a known regression: it stays silent until it grows.

    It accepts what the newest run of the suite with verdicts has found, each operation up to the
    upper end of its interval, at most the margin beyond its ratio. From then on such a night needs
    nobody on the morning page, the webhook is not told, and the exit code is 0. It ends when an
    operation grows beyond that or another one regresses, when the suite measures something else, or
    when the baseline runs other versions; then the next night says so and is a REGRESSION again.

    Who accepted what, when and why is in accepted-SUITE.json next to the runs. Remove the file to
    end it; accept again to accept more.

    orbax-bench accept ~/nightly "llama-8b restore" --reason "known: issue 1234, fixed in 0.12.9"

    Exit codes: 0; 2 there is no regression to accept, or the file cannot be written.
    """
    from orbax_bench_core.analysis import acceptance
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.publishing import Notifiers

    try:
        accepted, path, run = acceptance.accept(folder, suite, reason)
    except OSError as failure:
        raise UserError(f"cannot write into {folder}: {failure}") from None
    Notifiers.of().accepted(suite, str(run.root))
    show(f"accepted: {accepted.said}")
    show(f"File: {path}")
