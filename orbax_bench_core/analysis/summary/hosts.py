"""Hosts of a run: which machines they were, and how often each was started again."""

from __future__ import annotations

from collections.abc import Mapping

from orbax_bench_core.records import Record

_RESTARTS = {"restarts": "by its launcher", "rejoined": "during the run"}


class HostFinder:
    """Collects the machine of each host from the records of a run."""

    def __init__(self) -> None:
        """Knows no host yet."""
        self._machines: dict[int, dict[str, None]] = {}
        self._restarts: dict[int, dict[str, int]] = {}
        self._last: dict[int, object] = {}

    def add(self, record: Record) -> None:
        """Takes the record of one host for one repeat."""
        found = record.provenance.get("host")
        if not isinstance(found, Mapping) or self._last.get(record.host) is found:
            return  # the repeats of a worker share theirs
        self._last[record.host] = found
        self._machines.setdefault(record.host, {})[_machine(found)] = None
        counts = self._restarts.setdefault(record.host, {})
        for key in _RESTARTS:
            number = str(found.get(key, ""))
            if number.isdecimal():
                counts[key] = max(counts.get(key, 0), int(number))

    def found(self) -> tuple[str, ...]:
        """Returns a line per host; none for a run on one machine that was started once."""
        lines = tuple(self._line(host) for host in sorted(self._machines))
        machines = {name for names in self._machines.values() for name in names}
        restarts = sum(sum(counts.values()) for counts in self._restarts.values())
        return lines if len(machines) > 1 or restarts else ()

    def _line(self, host: int) -> str:
        again = [
            f"started again {count} time{'s' if count > 1 else ''} {_RESTARTS[key]}"
            for key, count in self._restarts[host].items()
            if count
        ]
        return ", ".join([f"host {host}: {' and '.join(self._machines[host])}", *again])


def _machine(found: Mapping[str, object]) -> str:
    """Returns the name of a machine, and where its cluster has it."""
    name = str(found.get("name", "unknown"))
    node, pool = found.get("node"), found.get("node_pool")
    places = [f"node {node}" if node and node != name else "", f"pool {pool}" if pool else ""]
    where = ", ".join(filter(None, places))
    return f"{name} ({where})" if where else name
