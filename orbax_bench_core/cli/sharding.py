"""`orbax-bench sharding`: make the sharding file for a checkpoint or a safetensors model."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Annotated

import typer


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

    An axis called fsdp, or anything not known, shards the first dimension of arrays of two or more;
    tensor, tp and model the last; data and replica none. Give the file as sharding_config_path:

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
