"""`orbax-bench doctor`: versions, devices, memory and disk of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Annotated, Any, Final

import typer

from orbax_bench_core.cli.terminal import new_console

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
        str, typer.Option("--path", help="Where checkpoints would go, for the free space there.")
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
        table.add_row(name, version)
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
    """Returns what JAX says of its devices, or the reason why it does not.

    It is asked in a process of its own: this one must not hold a device.
    """
    try:
        process = subprocess.run(
            [sys.executable, "-c", _PROBE],
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
