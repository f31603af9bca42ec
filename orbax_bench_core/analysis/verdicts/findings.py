"""Sentences on what decided a verdict: times, stalls, failed attempts, a missing operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict
from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.document import count
from orbax_bench_core.gate import Endpoint, FailureVerdict, StallCount, StallVerdict, Verdict

NOT_LOOKED_AT: Final = "not looked at"

ENDPOINTS: Final[Mapping[Endpoint, str]] = {
    "time": "the typical time",
    "stalls": "stalls",
    "failures": "failed attempts",
    "missing": "a missing operation",
    "storage": "trouble with storage",
}
"""Each endpoint, for people."""


def finding(operation: OperationVerdict) -> str:
    """Returns what decided the word of an operation, and what a PASS leaves open, as sentences.

    A PASS always says which share of stalls it cannot exclude, or that nobody looked at them.
    """
    verdict = operation.verdict
    if verdict.word == "PASS":
        return f"PASS for the typical time; {stalls(verdict)}."
    if verdict.endpoint == "missing":
        return f"Not judged: {verdict.reason}."
    if verdict.endpoint == "stalls" and verdict.stalls is not None:
        return f"{verdict.word} by stalls: {_of_stalls(verdict)}."
    if verdict.reason and verdict.p_regression is None:
        return f"Not judged: {verdict.reason}."
    why = f": {verdict.reason}" if verdict.reason else ""
    found = verdict.stalls
    beside = f"; {_counted(found)}" if found is not None and _some(found.of_all) else ""
    if verdict.word == "REGRESSION":
        return f"REGRESSION of the typical time{why}{beside}."
    return f"No verdict on the typical time{why}{beside}."


def stalls(verdict: Verdict) -> str:
    """Returns the stalls of an operation, and what their count cannot exclude."""
    found = verdict.stalls
    if found is None:
        return f"stalls were {NOT_LOOKED_AT}"
    bound = _share(found.of_all.bound)
    return f"{_counted(found)}: stalls of up to {bound} of operations cannot be excluded"


def attempts(point: PointVerdict) -> list[str]:
    """Returns the first attempts of each arm, how many failed, and what that cannot exclude.

    One line where none failed, otherwise a line for each arm.
    """
    if point.failures is None or not point.attempts:
        return [f"failed attempts were {NOT_LOOKED_AT}"]
    if not any(found.failed for found in point.attempts.values()):
        looked = point.failures.attempts
        counts = {found.count for found in point.attempts.values()}
        by = "" if counts == {looked} else f" by the {looked} per arm that were looked at"
        open_ = f"failures of up to {_share(point.failures.bound)} of attempts cannot be excluded"
        return [f"no first attempt failed, {_each(point)}: {open_}{by}"]
    lines = []
    for arm in ARMS:
        found = point.attempts.get(arm)
        if found is not None:
            first = f", first in {found.example}" if found.failed else ""
            bound = f" ({_up_to(point.failures, found.failed)})" if arm == "candidate" else ""
            lines.append(
                f"{arm}: {found.failed or 'none'} of {count(found.count, 'first attempt')} "
                f"failed{bound}{first}"
            )
    return lines


def open_shares(points: Iterable[PointVerdict]) -> str:
    """Returns which shares of stalls and of failures all points that pass leave open, at most."""
    points = list(points)
    found = [
        operation.verdict.stalls
        for point in points
        for operation in point.operations
        if operation.primary
    ]
    seen = [verdict.of_all.bound for verdict in found if verdict is not None]
    failed = [point.failures.bound for point in points if point.failures is not None]
    unseen = []
    if not seen or len(seen) < len(found):
        unseen.append("stalls")
    if not failed or len(failed) < len(points):
        unseen.append("failed attempts")
    told = []
    if seen:
        told.append(f"stalls of up to {_share(max(seen))} of operations")
    if failed:
        told.append(f"failures of up to {_share(max(failed))} of attempts")
    said = []
    if told:
        said.append(f"{' and '.join(told)} cannot be excluded.")
    if unseen:
        everywhere = "" if not told or len(unseen) == len(told) == 1 else " everywhere"
        said.append(f"{' and '.join(unseen)} were {NOT_LOOKED_AT}{everywhere}.")
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}" for sentence in said)


def seconds_of(value: float) -> str:
    """Returns a slow-down in seconds as a suite would write it, such as `2 ms`."""
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def _of_stalls(verdict: Verdict) -> str:
    found = verdict.stalls
    assert found is not None
    if not _some(found):
        return verdict.reason  # a limit on stalls that is not shown yet
    arm: Arm = "candidate"
    said = (
        f"the {arm} stalls in {found.candidate} of {found.operations} operations, the baseline in "
        f"{found.baseline or 'none'}"
    )
    means = (
        "" if found.mean_ratio is None else f", mean time of what passed {found.mean_ratio:.2f}x"
    )
    limit = f"; {verdict.reason}" if "max_stalls" in verdict.reason else ""
    later = "" if found.measured is None else f"; of all that was measured, {_counted(found)}"
    return f"{said} (more than {found.threshold:.3g} times the median{means}){limit}{later}"


def _counted(verdict: StallVerdict) -> str:
    """Returns the stalls among all that was measured, and how much of that was judged."""
    found = verdict.of_all
    judged = "" if verdict.measured is None else f" (the first {verdict.operations} were judged)"
    if not _some(found):
        return f"no stalls in {count(found.operations, 'operation')}{judged}"
    means = (
        "" if found.mean_ratio is None else f", mean time of what passed {found.mean_ratio:.2f}x"
    )
    return (
        f"{found.candidate} of {count(found.operations, 'operation')} stalled, and "
        f"{found.baseline} of the baseline{means}{judged}"
    )


def _some(found: StallCount) -> bool:
    return bool(found.candidate or found.baseline)


def _each(point: PointVerdict) -> str:
    counts = {arm: found.count for arm, found in point.attempts.items()}
    if len(set(counts.values())) == 1:
        return f"of {next(iter(counts.values()))} per arm"
    return " and ".join(f"of {count} of the {arm}" for arm, count in counts.items())


def _up_to(found: FailureVerdict, failed: int) -> str:
    bound = f"up to {_share(found.bound)}"
    return bound if found.candidate == failed else f"{bound} of the first {found.attempts}"


def _share(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 0.995 else "100 %"
