"""Commands on this machine: `doctor` and `limits`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orbax_bench_core.cli.arguments import NoLock, parse_size
from orbax_bench_core.cli.terminal import installed, new_console
from orbax_bench_core.python_command import python_command

if TYPE_CHECKING:
    from orbax_bench_core.limits import Limits

_EXTRAS = {"kfp": "kfp", "gcs": "gcsfs"}
_OPTIONAL = frozenset({"libtpu", "torch"})
_PROBE = """
import json
from orbax_bench_core.provenance import device_provenance
print(json.dumps(device_provenance()))
"""
_PROBE_S: Final = 60.0
"""Seconds that JAX may take to find its devices: libtpu waits for other hosts for ever."""


def doctor(
    path: Annotated[
        str, typer.Option(help="Where checkpoints would go, for the free space there.")
    ] = ".",
) -> None:
    """Say what this machine has, from devices to disk."""
    from rich.markup import escape
    from rich.table import Table

    from orbax_bench_core.provenance import UNKNOWN, host_provenance, package_version

    facts = host_provenance()
    table = Table("what", "found", show_header=False)
    devices = _devices()
    table.add_row("devices", devices)
    for name, version in facts["versions"].items():
        table.add_row(name, installed(version))
    table.add_row("python", facts["python"])
    table.add_row("host", f"{facts['host']['name']}, {facts['host']['kernel']}")
    table.add_row("cpu", f"{facts['host']['cpu_count']} x {facts['host']['cpu']}")
    table.add_row("memory", _memory())
    table.add_row(f"disk at {path}", _disk(path))
    for extra, distribution in _EXTRAS.items():
        version = package_version(distribution)
        missing = escape(f"missing: pip install 'orbax-bench[{extra}]'")
        table.add_row(f"extra {extra}", missing if version == UNKNOWN else version)
    lacking = [
        name
        for name, version in facts["versions"].items()
        if version == UNKNOWN and name not in _OPTIONAL
    ]
    if lacking or devices.startswith("none"):
        table.add_row("verdict", "[red]cannot measure: see above[/]")
    new_console().print(table)


def _devices() -> str:
    found = probe_devices()
    if isinstance(found, str):
        return found
    simulated = "; more are simulated as a mesh needs them" if found["platform"] == "cpu" else ""
    return f"{found['count']} x {found['kind']} ({found['platform']}{simulated})"


def probe_devices() -> dict[str, Any] | str:
    """Returns JAX's description of its devices, or the reason why it has none."""
    # It is asked in a process of its own: this one must not hold a device.
    try:
        process = subprocess.run(
            python_command("-c", _PROBE),
            capture_output=True,
            text=True,
            check=False,
            timeout=_PROBE_S,
        )
    except subprocess.TimeoutExpired:
        return (
            f"unknown: JAX did not answer within {_PROBE_S:g} s. On one host of a slice it waits "
            "for the others; set JAX_PLATFORMS=cpu to leave the devices alone"
        )
    if process.returncode != 0:
        return f"none: {process.stderr.strip().splitlines()[-1]}"
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def _memory() -> str:
    import psutil

    from orbax_bench_core.document import num_bytes

    memory = psutil.virtual_memory()
    return f"{num_bytes(memory.available)} free of {num_bytes(memory.total)}"


def _disk(path: str) -> str:
    import psutil

    from orbax_bench_core.document import num_bytes

    try:
        usage = psutil.disk_usage(path)
    except OSError as error:
        return f"unknown: {error}"
    return f"{num_bytes(usage.free)} free of {num_bytes(usage.total)}"


_MAX_PARALLELISM = 64
_TIMEOUT_S = 600.0


def limits(
    path: Annotated[str, typer.Option(help="The storage: an existing directory, or a gs:// URI.")],
    size: Annotated[
        str, typer.Option(help="Bytes that each probe moves, such as 256MiB.")
    ] = "256MiB",
    parallelism: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MAX_PARALLELISM,
            help="Threads, files and chunks at once. By default the devices of an accelerator, or "
            "the CPUs.",
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Type of the data, which decides how it compresses.")
    ] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print every raw time as JSON.")] = False,
    no_lock: NoLock = False,
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
