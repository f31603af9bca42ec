"""Commands on this machine: `doctor` and `limits`."""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import Annotated, Any, Final

import typer

from orbax_bench_core.cli.arguments import NoLock, ShowDetails, parse_size
from orbax_bench_core.cli.terminal import installed, show, show_answer
from orbax_bench_core.python_command import python_command

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
    """Say whether this machine can measure.

    It shows devices, memory, the disk, and which packages are installed.
    """
    from orbax_bench_core import pages
    from orbax_bench_core.errors import command
    from orbax_bench_core.provenance import UNKNOWN, host_provenance, package_version

    facts = host_provenance()
    versions, host = facts["versions"], facts["host"]
    devices, memory, disk = _devices(), _memory(), _disk(path)
    rows = [
        ("devices", devices),
        ("memory", memory),
        (f"disk at {path}", disk),
        ("cpu", f"{host['cpu_count']} x {host['cpu']}"),
        ("host", f"{host['name']}, {host['kernel']}"),
        ("python", facts["python"]),
        ("packages", ", ".join(f"{name} {installed(v)}" for name, v in versions.items())),
    ]
    for extra, distribution in _EXTRAS.items():
        version = package_version(distribution)
        missing = f"missing: pip install 'orbax-bench[{extra}]'"
        rows.append((f"extra {extra}", missing if version == UNKNOWN else version))
    lacking = [name for name, v in versions.items() if v == UNKNOWN and name not in _OPTIONAL]
    reasons = [f"{name} is not installed" for name in lacking]
    if devices.startswith("none"):
        reasons.append(f"JAX has no device, {devices}")
    first = pages.Code(command("init", "--synthetic"), "A first suite, which runs here.")
    if reasons:
        headline = pages.Callout("CANNOT MEASURE", "; ".join(reasons), "bad")
    elif devices.startswith("unknown"):
        headline = pages.Callout("UNKNOWN", devices.partition(": ")[2], "unsure")
    else:
        shortly = devices.partition(" (")[0]
        headline = pages.Callout(
            "", f"This machine can measure: {shortly}, memory {memory}, disk {disk}."
        )
    table = pages.Table(pages.columns("what", "found~"), tuple(map(pages.Row, rows)))
    show(
        pages.Document(
            about="This machine",
            headline=headline,
            summary=(table,),
            following=None if headline.word else first,
        )
    )


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

    from orbax_bench_core.pages import num_bytes

    memory = psutil.virtual_memory()
    return f"{num_bytes(memory.available)} free of {num_bytes(memory.total)}"


def _disk(path: str) -> str:
    import psutil

    from orbax_bench_core.pages import num_bytes

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
    details: ShowDetails = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every raw time as JSON.")] = False,
    no_lock: NoLock = False,
) -> None:
    """Measure what storage and memory can do at best.

    The files are temporary. Each probe runs once to warm up, then three times.
    """
    from orbax_bench_core.config import canonical
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.execute import measuring_lock, to_stderr
    from orbax_bench_core.limits import limits_document, take_limits

    num_bytes, known = parse_size(size), canonical(dtype)
    if known is None:
        raise UserError(f"--dtype: JAX has no dtype {dtype!r}; give one such as bfloat16")
    lock = contextlib.nullcontext() if no_lock else measuring_lock(to_stderr)
    with lock:
        found = take_limits(path, num_bytes, parallelism, _TIMEOUT_S, dtype=known)
    show_answer(found, limits_document(found), as_json=as_json, details=details)
