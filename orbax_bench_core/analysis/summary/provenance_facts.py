"""Facts on what a run ran on: machine, devices, versions and code."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.summary.model import PointStatus
from orbax_bench_core.document import num_bytes
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import VERIFIED_WORDS, Record, Verified

if TYPE_CHECKING:
    from orbax_bench_core.analysis.summary.model import PointStatus


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


_TRUSTED: Final = ("saved", "reference")
_FEW: Final = 8
"""So many points are named; of more, the rest is counted."""


def verification_lines(points: Iterable[PointStatus]) -> list[tuple[str, bool]]:
    """Returns a line per object of comparison, and whether it says that something is not verified.

    Points that are not verified are named. Points of which no repeat passed are left out.
    """
    names: dict[Verified, list[str]] = {word: [] for word in VERIFIED_WORDS}
    for point in points:
        if point.passed:
            names[point.verified].append(f"{point.point} {point.point_id}")
    return [(_line(word, found), word not in _TRUSTED) for word, found in names.items() if found]


def _line(word: Verified, names: list[str]) -> str:
    count = f"{len(names)} point{'' if len(names) == 1 else 's'}"
    if word in _TRUSTED:
        return f"{count} {VERIFIED_WORDS[word]}"
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{count} {VERIFIED_WORDS[word]}: {', '.join(names[:_FEW])}{more}"
