"""What must be the same on both sides before times that were taken apart can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbax_bench_core.results.provenance import UNKNOWN
from orbax_bench_core.results.record import Record


def surroundings(record: Record) -> dict[str, str]:
    """Returns the machine and the storage of a record; `unknown` where it does not say."""
    provenance = record.provenance
    return {
        "CPU": _word(provenance, "host", "cpu"),
        "number of CPUs": _word(provenance, "host", "cpu_count"),
        "device": _word(provenance, "devices", "kind"),
        "storage": _word(provenance, "storage", "type"),
    }


def other_surroundings(record: Record, other: Record) -> list[str]:
    """Returns in what the surroundings of two records are known to differ.

    Args:
        record: The record that is looked at.
        other: What it is held against.

    Returns:
        One line each, such as `storage: gs, was ext4`.
    """
    these, those = surroundings(record), surroundings(other)
    return [
        f"{name}: {value}, was {those[name]}"
        for name, value in these.items()
        if value != those[name] and UNKNOWN not in (value, those[name])
    ]


def _word(provenance: Mapping[str, Any], *path: str) -> str:
    found: Any = provenance
    for key in path:
        found = found.get(key, UNKNOWN) if isinstance(found, Mapping) else UNKNOWN
    return str(found)
