"""Step inspect-checkpoint: a checkpoint by its metadata."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.errors import check_amounts
from orbax_bench_core.inspection import inspect_checkpoint as look
from orbax_bench_core.inspection import inspection_document
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Files, Outputs

_GIB: Final = 2**30


@tried_again
def inspect_checkpoint(
    checkpoint: str,
    *,
    mesh: str = "",
    devices_per_host: int = 0,
    restore_concurrent_gb: float = 0.0,
    files: Files | None = None,
) -> Outputs[list[str]]:
    """Looks at a checkpoint without loading an array.

    Args:
        checkpoint: Its root, or the directory of one item; local or gs://.
        mesh: The mesh that it would be loaded onto, as `fsdp=8`; empty for that of the save.
        devices_per_host: Devices of one process there; 0 for as they were.
        restore_concurrent_gb: Most GiB in flight while loading; 0 for any.
        files: Where what was found is written.

    Returns:
        The value names what is wrong with it, a line each: none for a checkpoint that is committed,
        and of which nothing is missing that metadata and file sizes tell of.

    Raises:
        UserError: There is no checkpoint, the mesh cannot hold it, or a file cannot be written.
    """
    check_amounts(restore_concurrent_gb=restore_concurrent_gb)
    found = look(
        checkpoint,
        mesh=mesh or None,
        devices_per_host=devices_per_host or None,
        restore_limit=int(min(restore_concurrent_gb, _GIB) * _GIB) or None,
    )
    named = (files or Files()).write("inspection", inspection_document(found), found.numbers())
    return Outputs(value=list(found.problems), named=named)
