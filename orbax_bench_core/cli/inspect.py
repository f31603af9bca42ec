"""`orbax-bench inspect`: a checkpoint by its metadata, damaged or not."""

import os
import subprocess
import sys
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import AsJson, Html, Markdown
from orbax_bench_core.cli.results import publish
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
            help="The mesh to load it onto; by default the mesh of the save.",
        ),
    ] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process of that mesh.")
    ] = None,
    restore_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while loading.")
    ] = None,
    as_json: AsJson = False,
    html: Html = None,
    markdown: Markdown = None,
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


def sharding(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Root of a checkpoint, the directory of one item, or a folder of .safetensors "
            "files; local or gs://.",
        ),
    ],
    mesh: Annotated[
        str,
        typer.Option(
            metavar="AXIS=SIZE,...",
            help="The mesh to load onto, such as fsdp=8 or data=2,fsdp=4,tensor=2.",
        ),
    ],
) -> None:
    """Print a sharding file made from a checkpoint's metadata.

    An axis called fsdp, or with an unknown name, shards the first dimension of arrays of two or
    more; tensor, tp and model the last; data and replica none. Give the file as
    sharding_config_path:

    orbax-bench sharding /ckpt/items --mesh fsdp=8 > sharding.json
    """
    from orbax_bench_core.errors import UserError

    # JAX stays out of this process, and off the accelerators.
    process = subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.steps.sharding", checkpoint, mesh],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    if process.returncode != 0:
        reason = process.stderr.strip().splitlines()[-1:] or ["it ended without a word"]
        raise UserError(reason[0])
    sys.stdout.write(process.stdout)
