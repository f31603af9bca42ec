"""Operations that `gate.primary` names and that no point has measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts.model import PointVerdict
from orbax_bench_core.config import GateConfig
from orbax_bench_core.errors import did_you_mean

_FIRST: Final = "See to the names under `gate.primary` first."


def never_measured(gate: GateConfig, measured: Iterable[str]) -> str:
    """Returns which primary operations a suite names that no point has measured; empty for none.

    A suite names those of all its benchmarks, each of which may lack some. What none of them has is
    a name that was mistaken, and its operation was not looked at.
    """
    known = sorted(set(measured))
    unknown = [name for name in gate.primary if name not in known]
    if not (gate.names_primary and known and unknown):
        return ""
    hints = [did_you_mean(name, known) for name in unknown]
    near = [hint for hint in dict.fromkeys(hints) if not hint.startswith("known: ")]
    hint = "; ".join([*near, f"measured: {', '.join(known)}"])
    return (
        f"`gate.primary` names {', '.join(unknown)}, which no arm of any point has measured "
        f"({hint}), so that nothing is said of it: correct the name, and run again in another "
        "output directory"
    )


def unless_named(points: Sequence[PointVerdict], problem: str) -> tuple[PointVerdict, ...]:
    """Returns the verdicts of points of which none passes, for what `never_measured` says.

    A regression stands, and where there is no problem all of them do.
    """
    if not problem:
        return tuple(points)
    return tuple(
        point if point.word == "REGRESSION" else _not_passed(point, problem) for point in points
    )


def _not_passed(point: PointVerdict, problem: str) -> PointVerdict:
    operations = [
        operation.model_copy(update={"advice": _FIRST})
        if operation.primary and operation.verdict.word == "INCONCLUSIVE"
        else operation
        for operation in point.operations
    ]
    return point.model_copy(
        update={
            "word": "INCONCLUSIVE",
            "endpoint": "missing",
            "reason": problem,
            "operations": tuple(operations),
            "settled": True,
            "next_look": None,
        }
    )
