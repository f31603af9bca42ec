"""Commands that read past runs: `best`, `history`, `report` and `site`."""

import sys
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import AsJson, parse_size
from orbax_bench_core.cli.results import show, show_answer, write_page
from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.exit_codes import Exit, exit_code

PageWithFigures = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Also write a page with figures.")
]


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
    html: PageWithFigures = None,
    as_json: AsJson = False,
) -> None:
    """Show which options to take.

    It ranks the points of a sweep by the goal and shows which tie with the best, what each option
    does, and which points no other beats in save, load and bytes together. The recommendation is
    shown as a suite entry, as Orbax code and as the difference to Orbax's defaults, with the
    evidence and what was not measured.

    orbax-bench best /tmp/bench --goal blocking=3,load=1 --peak-memory 8GiB

    Exit codes: 0; 1 no point can be recommended; 2 there is no sweep, or the goal was not measured.
    """
    from orbax_bench_core.analysis.best import best as choose
    from orbax_bench_core.analysis.best import best_document
    from orbax_bench_core.baselines import registry_path

    bound = None if peak_memory is None else parse_size(peak_memory, "--peak-memory")
    target = None if html is None else registry_path(html)
    found = choose(directory, goal=goal, peak_memory=bound)
    document = best_document(found)
    write_page(document, target)
    show_answer(found, document, target, as_json=as_json)
    answered = all(case.recommendation for case in found.cases)
    raise typer.Exit(exit_code(incomplete=not answered))


def history(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, patterns such as 'nightly/*', or "
            "registries of baselines; local or gs://.",
        ),
    ],
    html: PageWithFigures = None,
    significance: Annotated[
        float,
        typer.Option(
            help="Chance of a flag within 60 nights when nothing has changed, from 0.001 to 0.1."
        ),
    ] = 0.05,
    every: Annotated[
        bool, typer.Option("--all", help="Also show operations that decide no verdict.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show past runs in order of time, and when they changed.

    For paired runs (`ab`) it follows the ratio to the reference arm, which stays stable when the
    machine does not, and flags each change with the versions and commits before and after it. A
    flag is a question: next to it is the command for a paired comparison of both sides, which
    answers it. Pin the reference: an environment with exact versions. For other runs it shows
    seconds. In a folder with a morning page it reuses that page's summaries of finished runs.

    orbax-bench history nightly --html history.html

    orbax-bench history gs://bucket/nightly 'more/*'

    Exit codes: 0; 1 files were left out, because their content does not match their path.
    """
    from orbax_bench_core.analysis.history import LEAST, MOST, history_document
    from orbax_bench_core.analysis.history import history as build
    from orbax_bench_core.baselines import find_runs, registry_path
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exports.site import Cards

    if not LEAST <= significance <= MOST:
        raise UserError(f"--significance: give a number from {LEAST:g} to {MOST:g}")
    target = None if html is None else registry_path(html)
    left_out: list[str] = []
    found = build(
        find_runs(places, left_out=left_out),
        significance=significance,
        left_out=left_out,
        read=Cards.beside(places).measured,
    )
    document = history_document(found, every=every)
    write_page(document, target)
    show_answer(found, document, target, as_json=as_json)
    raise typer.Exit(exit_code(incomplete=bool(found.left_out)))


def report(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Record a digest of all bytes of the loaded checkpoints, also of those above "
            "256 MiB, for `lineage --deep`.",
        ),
    ] = False,
) -> None:
    """Make every output of a run from its records again.

    Exit codes: 0 all is written; 1 it cannot be written, or files were left out, because their
    content does not match their path; 2 there is no run.
    """
    from orbax_bench_core.analysis.summary import notes_document, terminal_document
    from orbax_bench_core.cli.measurement import unwritten
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
    show(notes_document(info), console)
    extra = limits_of(run, info, summary)
    show(terminal_document(info, summary, extra, answer_of(run)), console)
    raise typer.Exit(exit_code(incomplete=bool(summary.left_out)))


def site(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Folders of run directories, up to two levels deep; or gs://."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder of index.html; by default DIR."),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="Runs of each suite to show, the newest ones.")
    ] = 60,
) -> None:
    """Write the morning page of past runs: DIR/index.html.

    It has the latest verdict of each suite, the trend of each series with its changes and the
    releases around them, and every run with links to its pages. From then on every run into a
    folder below DIR updates it, and every run if ORBAX_BENCH_SITE names DIR. It needs no server and
    no network, only its folder.

    orbax-bench site ~/nightly

    orbax-bench site gs://bucket/nightly gs://bucket/releases -o gs://bucket/site

    Exit codes: 0; 1 something could not be read, which the page names.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exports.site import PAGE, site_document, write_site
    from orbax_bench_core.records import RunDirectory

    folder = places[0] if output is None else output
    try:
        found = write_site(places, folder, most=most)
    except OSError as failure:
        raise UserError(f"cannot write {folder}/{PAGE}: {failure}") from None
    show(site_document(found, RunDirectory(folder).root))
    show(f"Page: {folder.rstrip('/')}/{PAGE}")
    raise typer.Exit(exit_code(incomplete=bool(found.unread)))
