"""Which library versions differ between the arms of a comparison."""

from __future__ import annotations

from collections.abc import Iterable

from orbax_bench_core.config.arms import ARMS
from orbax_bench_core.records.record import Record


def version_differences(records: Iterable[Record]) -> tuple[str, ...]:
    """Returns what differs, each as `jax: 0.9.0 in the baseline, 0.10.2 in the candidate`.

    A comparison of two releases may bring other packages along; then the verdict is on all of them
    together, and a reader must know.

    Args:
        records: The records of both arms.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for record in records:
        for package, version in record.provenance.get("versions", {}).items():
            by_arm = found.setdefault(package, {arm: set() for arm in ARMS})
            if record.arm is not None:
                by_arm[record.arm].add(str(version))
    return tuple(
        f"{package}: {_words(by_arm['baseline'])} in the baseline, "
        f"{_words(by_arm['candidate'])} in the candidate"
        for package, by_arm in found.items()
        if all(by_arm.values()) and by_arm["baseline"] != by_arm["candidate"]
    )


def _words(versions: set[str]) -> str:
    return " and ".join(sorted(versions))
