"""`orbax-bench limits`: best speeds of this machine and a storage."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import parse_size
from orbax_bench_core.cli.terminal import new_console

if TYPE_CHECKING:
    from orbax_bench_core.limits import Limits

_MAX_PARALLELISM = 64
_TIMEOUT_S = 600.0


def limits(
    path: Annotated[
        str, typer.Option("--path", help="The storage: an existing directory, or a gs:// URI.")
    ],
    size: Annotated[
        str, typer.Option("--size", help="Bytes that each probe moves, such as 256MiB.")
    ] = "256MiB",
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism",
            min=1,
            max=_MAX_PARALLELISM,
            help="Threads, files and chunks at once. By default the devices of an accelerator, or "
            "the CPUs.",
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", help="Type of the data, which decides how it compresses.")
    ] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print every raw time as JSON.")] = False,
    no_lock: Annotated[
        bool,
        typer.Option("--no-lock", help="Measure even while a run measures on this machine."),
    ] = False,
) -> None:
    """Measure what storage and memory can do at best.

    The files are temporary. Each probe runs once to warm up, then three times.
    """
    from orbax_bench_core.config import canonical
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.execute import measuring_lock, to_stderr
    from orbax_bench_core.limits import take_limits

    num_bytes, known = parse_size(size), canonical(dtype)
    if known is None:
        raise UserError(f"--dtype: JAX has no dtype {dtype!r}; give one such as bfloat16")
    lock = contextlib.nullcontext() if no_lock else measuring_lock(to_stderr)
    with lock:
        found = take_limits(path, num_bytes, parallelism, _TIMEOUT_S, dtype=known)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        _print_table(found)


def _print_table(found: Limits) -> None:
    from rich import box
    from rich.table import Table

    from orbax_bench_core.document import num_bytes
    from orbax_bench_core.limits import PROBE_HEADINGS, probe_cells

    console = new_console(soft_wrap=not sys.stdout.isatty())
    console.print(
        f"{found.path}: {num_bytes(found.num_bytes)} of {found.dtype} in {found.num_threads} "
        "parts at once",
        markup=False,
        highlight=False,
    )
    if found.capped_by:
        console.print(f"[yellow]note:[/] {found.capped_by}")
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for index, heading in enumerate(PROBE_HEADINGS):
        table.add_column(heading, justify="right" if 0 < index < 3 else "left")
    for result in found.probes:
        table.add_row(*probe_cells(result))
    console.print(table)
    console.print(
        f"[dim]Median of {max(len(result.seconds) for result in found.probes)} repeats, spread is "
        f"the interquartile range over it; load average {found.surroundings.load_average:.2g}.[/]"
    )
