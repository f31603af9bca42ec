"""`orbax-bench inspect`: a checkpoint by its metadata, damaged or not."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.plan import publish
from orbax_bench_core.exit_codes import exit_code

_GIB = 2**30


def inspect(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Root of a checkpoint or the directory of one item; local or gs://.",
        ),
    ],
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=SIZE,...",
            help="The mesh that it would be loaded onto; by default that it was saved from.",
        ),
    ] = None,
    devices_per_host: Annotated[
        int | None,
        typer.Option("--devices-per-host", min=1, help="Devices of one process of that mesh."),
    ] = None,
    restore_concurrent_gb: Annotated[
        float | None,
        typer.Option("--restore-concurrent-gb", help="Most GiB in flight while loading."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON.")] = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write a page.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE", help="Also write Markdown.")
    ] = None,
) -> None:
    """Look at a checkpoint without loading an array.

    Whether its save finished and what is missing, its format, files and compression, how its
    chunks fit a mesh, what each host would read and hold for a load, and what could be better.

    orbax-bench inspect /ckpt/100 --mesh fsdp=8

    Exit codes: 0; 1 it is damaged or its save has not finished; 2 there is no checkpoint.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.inspection import inspect_checkpoint, inspection_document

    limit = restore_concurrent_gb
    if limit is not None and not 0 < limit < float("inf"):
        raise UserError(f"--restore-concurrent-gb: must be a positive number, got {limit}")
    found = inspect_checkpoint(
        checkpoint,
        mesh=mesh,
        devices_per_host=devices_per_host,
        restore_limit=None if limit is None else int(limit * _GIB),
    )
    publish(inspection_document(found), found.numbers(), html, markdown, as_json=as_json)
    raise typer.Exit(exit_code(incomplete=bool(found.problems)))
