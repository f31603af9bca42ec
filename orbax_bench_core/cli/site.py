"""`orbax-bench site`: the morning page of past runs, at one address."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import results_console
from orbax_bench_core.exit_codes import exit_code


def site(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...", help="Folders of run directories, up to two levels deep; or gs://."
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Where index.html is to lie; by default DIR."
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="Runs of each suite to show, the newest ones.")
    ] = 60,
) -> None:
    """Write the morning page of past runs: DIR/index.html.

    It has the latest verdict of each suite, the trend of each series with its changes and the
    releases around them, and every run with links to its pages. Every run into a folder below DIR
    writes it again from then on, and so does every run where ORBAX_BENCH_SITE names DIR. It needs
    no server and no network, only its folder.

    orbax-bench site ~/nightly

    orbax-bench site gs://bucket/nightly gs://bucket/releases -o gs://bucket/site

    Exit codes: 0; 1 something could not be read, which the page names.
    """
    from orbax_bench_core.document import print_document
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.exports.site import PAGE, site_document, write_site
    from orbax_bench_core.records import RunDirectory

    folder = places[0] if output is None else output
    try:
        found = write_site(places, folder, most=most)
    except OSError as failure:
        raise UserError(f"cannot write {folder}/{PAGE}: {failure}") from None
    console = results_console()
    print_document(site_document(found, RunDirectory(folder).root), console)
    page = f"Page: {folder.rstrip('/')}/{PAGE}"
    console.print(page, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(exit_code(incomplete=bool(found.unread)))
