"""Facts on what a run ran on: machine, devices, versions and code."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from orbax_bench_core.analysis.summary.model import PointStatus
from orbax_bench_core.document import num_bytes
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Record


def provenance_facts(
    example: Record | None, hosts: Sequence[str], points: Sequence[PointStatus]
) -> dict[str, str]:
    """Returns what the run ran on, as label and text."""
    if example is None:
        return {}
    provenance = example.provenance
    host, devices, git = (_mapping(provenance.get(name)) for name in ("host", "devices", "git"))
    versions = _mapping(provenance.get("versions"))
    facts = {
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{_memory(host['memory_bytes'])} memory",
        **({"hosts": "; ".join(hosts)} if hosts else {}),
        "kernel": str(host["kernel"]),
        "versions": ", ".join(f"{name} {v}" for name, v in versions.items()) or UNKNOWN,
        "code under test": example.code.words,
        "orbax-bench": f"{git['commit']}, dirty: {git['dirty']}",
    }
    if devices:
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    sizes = {
        point.checkpoint: num_bytes(point.checkpoint_bytes)
        for point in points
        if point.checkpoint_bytes is not None
    }
    if sizes:
        every = [f"{name} {size}" for name, size in sizes.items()]
        alike = len(set(sizes.values())) == 1
        facts["checkpoint size"] = next(iter(sizes.values())) if alike else ", ".join(every)
    return facts


def _memory(said: object) -> str:
    return num_bytes(said) if isinstance(said, int) and 0 <= said < 2**63 else UNKNOWN


def _mapping(part: object) -> collections.defaultdict[str, object]:
    """Returns a part of a provenance, in which what it does not say is unknown."""
    said = part if isinstance(part, dict) else {}
    return collections.defaultdict(lambda: UNKNOWN, said)
