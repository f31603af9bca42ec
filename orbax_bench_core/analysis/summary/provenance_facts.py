"""Facts on what a run ran on: machine, devices, versions and code."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from orbax_bench_core.document import num_bytes
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Record


def provenance_facts(example: Record | None, hosts: Sequence[str]) -> dict[str, str]:
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
    if example.state is not None:
        facts["checkpoint size"] = num_bytes(example.state.num_bytes)
    return facts


def _memory(said: object) -> str:
    return num_bytes(said) if isinstance(said, int) and 0 <= said < 2**63 else UNKNOWN


def _mapping(part: object) -> collections.defaultdict[str, object]:
    """Returns a part of a provenance, in which what it does not say is unknown."""
    said = part if isinstance(part, dict) else {}
    return collections.defaultdict(lambda: UNKNOWN, said)
