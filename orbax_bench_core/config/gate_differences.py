"""Differences of two gates, in words and as flags of `compare`."""

import json
from typing import Any, Final

from orbax_bench_core.config.gate import GateConfig


def gate_changes(before: GateConfig, after: GateConfig) -> str:
    """Returns the differences of two gates, such as `margin 15 % -> 30 %`; empty if none."""
    old, new = before.canonical(), after.canonical()
    changed = []
    for name in dict.fromkeys([*old, *new]):
        # An operation without a rule of its own has that of all.
        common = name.rpartition(".")[2]
        was, now = old.get(name, old[common]), new.get(name, new[common])
        if was != now:
            changed.append(f"{name} {_write_value(common, was)} -> {_write_value(common, now)}")
    return ", ".join(changed)


def gate_edits(before: GateConfig, after: GateConfig) -> tuple[str, ...]:
    """Returns the flags with which `compare` judges by the other rules, such as `margin=0.3`."""
    # What decides how operations are measured, rather than how they are judged, is left out.
    old, new = before.canonical(), after.canonical()
    return tuple(
        f"{name}={json.dumps(value)}"
        for name, value in new.items()
        if name not in _MEASURED_BY and value != old.get(name, old[name.rpartition(".")[2]])
    )


_MEASURED_BY: Final = ("seed", "lives", "operations_per_life", "blocks_per_process")

_SHARES: Final = ("tolerance", "margin", "max_stalls", "max_failures", "alpha", "pass_alpha")


def _write_value(name: str, value: Any) -> str:
    if value is None or value == "auto":
        return value or "none"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if name in _SHARES:
        return f"{100 * value:g} %"
    if name == "limit_minutes":
        return f"{value:g} min"
    return f"{value:g} s" if name == "min_effect_s" else str(value)
