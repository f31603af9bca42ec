"""Sentences on verdicts: what decided them, what was compared, and what to do."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from orbax_bench_core.analysis.intervals import between
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.analysis.verdicts.evidence import evidence_remarks
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, Unmatched
from orbax_bench_core.config import ARMS, MAX_PRIMARY, PER_ARM, Arm, GateConfig
from orbax_bench_core.document import count
from orbax_bench_core.gate import Endpoint, FailureVerdict, StallVerdict, Verdict, Word

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
    """Returns the reasons for the word of an operation, and the gaps of a PASS, as sentences.

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
    beside = f"; {_counted(found)}" if found is not None and _some(found) else ""
    by = "" if verdict.look is None else f" by {verdict.operations} operations per arm"
    if verdict.word == "REGRESSION":
        return f"REGRESSION of the typical time{by}{why}{beside}."
    return f"No verdict on the typical time{by}{why}{beside}."


def stalls(verdict: Verdict) -> str:
    """Returns the stalls of an operation, and what their count cannot exclude."""
    found = verdict.stalls
    if found is None:
        return f"stalls were {NOT_LOOKED_AT}"
    bound = _share(found.bound)
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
    seen = [verdict.bound for verdict in found if verdict is not None]
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


def covers(point: PointVerdict) -> str:
    """Returns the scope of a point's PASS: which stalls and failures it leaves open."""
    primary = [operation for operation in point.operations if operation.primary]
    counts = {operation.verdict.operations for operation in primary}
    least, most = min(counts, default=0), max(counts, default=0)
    per_arm = str(least) if least == most else f"{least} to {most}"
    times = f"times of {', '.join(operation.operation for operation in primary)}"
    open_ = open_shares([point]).removesuffix(".")
    return f"{times}; {per_arm} operations per arm; {open_[:1].lower()}{open_[1:]}"


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
    return f"{said} (more than {found.threshold:.3g} times the median{means}){limit}"


def _counted(found: StallVerdict) -> str:
    """Returns the stalls of both arms."""
    if not _some(found):
        return f"no stalls in {count(found.operations, 'operation')}"
    means = (
        "" if found.mean_ratio is None else f", mean time of what passed {found.mean_ratio:.2f}x"
    )
    return (
        f"{found.candidate} of {count(found.operations, 'operation')} stalled, and "
        f"{found.baseline} of the baseline{means}"
    )


def _some(found: StallVerdict) -> bool:
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


MARKS: Final[dict[Word, str]] = {"REGRESSION": "✗", "INCONCLUSIVE": "?", "PASS": "✓"}
"""Stands before each word, so that no verdict is told by colour alone."""

STYLES: Final[dict[Word, str]] = {
    "REGRESSION": "bold red",
    "INCONCLUSIVE": "yellow",
    "PASS": "green",
}
"""Terminal style of each word."""

MEANINGS: Final[dict[Word, str]] = {
    "REGRESSION": "the candidate is typically slower by more than the tolerance, or it stalls or "
    "fails more often than chance explains",
    "PASS": "a typical slow-down as large as the margin is ruled out for each primary "
    "operation, and nothing speaks for more stalls or failures; how many could not be seen stands "
    "beside it",
    "INCONCLUSIVE": "what was measured shows neither of the two; this is not a pass",
}

STUDY: Final = "COMPARED"
STUDY_MEANING: Final = "two systems were measured side by side; no release is judged"

READING: Final[tuple[str, ...]] = (
    (
        "Three things are judged: the typical time of each primary operation, its stalls, and "
        "the attempts of the point that failed or hung. Each verdict names which of them "
        "decided."
    ),
    "The ratio is the time of the candidate over that of the baseline: above 1 is slower.",
    (
        "Read the 95 % interval first: the true ratio lies within it in at least 95 of 100 such "
        "comparisons, however early they ended. Where it is only `at most` or `at least` a ratio, "
        "too few blocks rule out anything on the other side."
    ),
    (
        "The ratio behind it is the best guess. It leans to the verdict, because a comparison "
        "ends when the data look clear."
    ),
    (
        "A stall is an operation far above the median of both arms: by half at least, and by "
        "more than the usual spread. The typical time does not see a few of them."
    ),
    (
        "A PASS says how large a share of stalls and of failed attempts it cannot exclude: "
        "where one in ten stalls, none in 10 is seen every third time. More operations make the "
        "share smaller."
    ),
    (
        "Only first attempts count. One that failed or hung counts as slower than all others, "
        "and as a stall; a retry is kept to find the cause."
    ),
    (
        "Faster is said only where a candidate as slow as the baseline is ruled out. Otherwise "
        "a PASS means: not slower by the margin."
    ),
    "A verdict in (parentheses) is of an operation that is not primary: it decides nothing.",
    (
        "A point is REGRESSION when one of its primary operations is, or its attempts are, and "
        "PASS when all of them pass."
    ),
    (
        "Arms that are `unpaired` were run apart: whatever else changed shows as a difference too. "
        "Their ratio is that of the medians."
    ),
)
"""Reading aid of a table of verdicts, one sentence each."""


def ratio(value: float | None) -> str:
    """Returns a ratio of times, such as `1.210x`; a dash when there is none."""
    return "–" if value is None or math.isnan(value) else f"{_plain(value)}x"


class HasInterval(Protocol):
    """Whatever has a 95 % interval; an end that is None is open."""

    @property
    def low(self) -> float | None:
        """Lower end."""

    @property
    def high(self) -> float | None:
        """Upper end."""


def interval(found: HasInterval) -> str:
    """Returns the 95 % interval of a ratio, such as `[1.152–1.271]`; a dash without one.

    Where too few blocks rule out nothing on one side, it is `at most 1.131` or `at least 0.952`.
    """
    return between(found.low, found.high, _plain)


def with_best_guess(verdict: Verdict) -> str:
    """Returns the interval of a ratio, and after it the best guess."""
    known, guess = interval(verdict), ratio(verdict.ratio)
    return f"{known}, best guess {guess}" if known.startswith("at ") else f"{known} {guess}"


def beside(found: HasInterval, write: Callable[[float], str] | None = None) -> str:
    """Returns an interval as it stands behind its ratio; empty without one."""
    known = between(found.low, found.high, write or _plain)
    if known == "–":
        return ""
    return f", {known}" if known.startswith("at ") else f" {known}"


def ends(found: HasInterval) -> tuple[float, float] | tuple[None, None]:
    """Returns both ends of an interval, or None for both where there is none."""
    low, high = found.low, found.high
    if (low is None and high is None) or any(
        end is not None and math.isnan(end) for end in (low, high)
    ):
        return None, None
    return 0.0 if low is None else low, math.inf if high is None else high


def compared_word(found: HasInterval) -> str:
    """Describes an interval between two systems that are not releases of one another."""
    low, high = ends(found)
    if low is None or high is None or low <= 1 <= high:
        return "not told apart"
    return "faster" if high < 1 else "slower"


def share(value: float) -> str:
    """Returns a share in percent with the digits that it has, such as `0.5 %`."""
    return f"{100 * value:.3g} %"


def word_of(operation: OperationVerdict) -> str:
    """Returns the word of an operation, in parentheses when it decides nothing."""
    return operation.verdict.word if operation.primary else f"({operation.verdict.word})"


def what_to_do(operation: OperationVerdict) -> str:
    """Returns the reason for the verdict of an operation, and the advice about it."""
    said = [finding(operation), operation.advice]
    if operation.verdict.reason and operation.verdict.reason in operation.advice:
        said = said[1:]
    if operation.false_discovery is not None and operation.verdict.word == "REGRESSION":
        said.append(f"(False discovery rate: {share(operation.false_discovery)}.)")
    return " ".join(filter(None, said))


def flags(operation: OperationVerdict) -> list[str]:
    """Returns the health flags of an operation's series, one line each."""
    of_arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in operation.health:
            for flag in operation.health[arm].flags:
                of_arms.setdefault(flag, []).append(arm)
    return [
        f"{'both arms' if len(arms) > 1 else arms[0]}: {flag}" for flag, arms in of_arms.items()
    ]


def remarks(point: PointVerdict) -> list[str]:
    """Returns further remarks on a point."""
    return [
        *filter(None, [_told_once(point), *attempts(point), cause(point)]),
        *filter(None, [*evidence_remarks(point), point.switching]),
        *filter(None, [processes(point), continued(point)]),
        *filter(None, [other_cache(operation.cache for operation in point.operations)]),
    ]


def _told_once(point: PointVerdict) -> str:
    """Returns the reason of a point; empty if its attempts or an operation say the same."""
    told = point.endpoint == "stalls" or (point.endpoint == "failures" and point.attempts)
    limit = "max_failures" in point.reason
    return "" if told and not limit and not point.failed else point.reason


def cause(point: PointVerdict) -> str:
    """Returns the advice about failed attempts that decided; empty if others did."""
    failed = any(found.failed for found in point.attempts.values())
    if point.endpoint != "failures" or point.word == "PASS" or point.failed or not failed:
        return ""
    return (
        "Look at the errors of the failed attempts, in the report and the records: attempts that "
        "passed when they were tried again still count as failed."
    )


def processes(point: PointVerdict) -> str:
    """Returns which worker processes measured a point, as a sentence; empty when unpaired."""
    if point.design is None:
        return ""
    bound = point.design.left_open
    known = "" if bound is None else f", by up to {share(bound)} (95 %) by the noise passport"
    if (per_process := point.design.blocks_per_process) is not None:
        number = -(-point.blocks // per_process)
        judged = max((each.verdict.operations for each in point.operations), default=0) // PER_ARM
        those = -(-judged // per_process)
        them = (
            "them"
            if those in (0, number)
            else f"the first {those}, by which the times were judged,"
        )
        said = count(number, "worker process", "worker processes")
        return f"{said}, each of both arms; what differs between {them} is in the interval."
    if point.design.workers == "shared":
        return "One worker process for both arms: the verdict is about this process."
    if point.design.workers == "one_per_arm":
        return f"One process per arm: an offset of a process counts as a difference{known}."
    before = ""
    if after := point.design.after:
        before = (
            f" In the {count(after, 'block')} before them the arms shared workers, and an "
            "operation may have paid for the one before it: these are not judged."
        )
    lives = count(point.blocks * PER_ARM, "life", "lives")
    return f"{lives} per arm, each a process of its own.{before}"


def continued(point: PointVerdict) -> str:
    """Returns how many lives an interruption cut in two, as a sentence; empty without one."""
    if not point.continued:
        return ""
    lives = count(point.continued, "life was", "lives were")
    return f"{lives} continued in a new process after an interruption."


def design(point: PointVerdict) -> str:
    """Returns how a point was measured: `unpaired`, or in how many blocks."""
    if point.mode == "unpaired":
        return "unpaired"
    return f"{point.blocks or 'no'} block{'' if point.blocks == 1 else 's'}"


def decided(point: PointVerdict) -> str:
    """Returns the cause of a verdict other than PASS, such as `decided by stalls`; else nothing."""
    if point.word == "PASS" or point.failed or point.is_study or not point.operations:
        return ""
    return f"decided by {ENDPOINTS[point.endpoint]}"


def rules(gate: GateConfig) -> list[str]:
    """Returns the rules of the gate, one line each."""
    family = "the primary operations of a point"
    if gate.family == "suite":
        family = "the primary operations of all points"
    together = f"over all looks and {family} together (Holm)"
    looks, of_lives = gate.looks, gate.looks_of(gate.operations_per_life)
    said = [
        f"Primary operations: {', '.join(gate.primary)}{_otherwise(gate)}. They decide.",
        f"Tolerance {share(gate.tolerance)}: REGRESSION says that the slow-down is larger.",
        f"Margin {share(gate.margin)}: PASS says that the slow-down is smaller.",
        *_floor(gate),
        f"Within the tolerance, at most {share(gate.alpha)} end in REGRESSION, {together}.",
        f"At the margin, at most {share(gate.pass_alpha)} end in PASS.",
        f"Arms that stall alike end in REGRESSION by stalls in at most {share(gate.alpha)}.",
        (
            f"Arms that fail alike end in REGRESSION by failures in at most "
            f"{share(gate.failures_alpha)}."
        ),
        (
            f"Together at most {share(gate.false_alarms)} of "
            f"{'runs' if gate.family == 'suite' else 'points'} whose arms do not differ end in "
            "REGRESSION."
        ),
        *_limits(gate),
        f"Looks at {', '.join(map(str, looks))} operations per arm.",
        "REGRESSION ends a comparison at any look; PASS is of all that was measured.",
        f"With lives, looks at {', '.join(map(str, of_lives))}.",
        f"What stalls or fails is followed up, to {gate.looks_at_all()[-1]} operations per arm.",
        "Blocks have two operations of each arm in random order, or two lives.",
    ]
    for operation, own in gate.metrics.items():
        given = own.model_dump(exclude_none=True)
        if given:
            values = ", ".join(
                f"at least {seconds_of(value)}"
                if name == "min_effect_s"
                else f"{name} {share(value)}"
                for name, value in given.items()
            )
            said.append(f"For {operation}: {values}.")
    return said


def _floor(gate: GateConfig) -> list[str]:
    if not gate.min_effect_s:
        return []
    floor = seconds_of(gate.min_effect_s)
    return [
        f"A slow-down below {floor} does not count here: tolerance and margin are at least that.",
        f"The interval is of ratios, and need not agree with a verdict that the {floor} decided.",
    ]


def _limits(gate: GateConfig) -> list[str]:
    said = []
    reached = gate.limits_at(0, 0.0)
    for name in ("stalls", "failures"):
        limit = getattr(reached, f"max_{name}")
        automatic = getattr(gate, f"max_{name}") == "auto"
        far = (
            f", for as far as {gate.limit_minutes:g} minutes of a point reach" if automatic else ""
        )
        if limit is not None:
            said.append(
                f"PASS has to exclude {name} beyond those of the baseline in more than "
                f"{share(limit)}{far}."
            )
    return said


def _plain(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3f}" if abs(value) < 9.9995 else f"{value:.4g}"


def _otherwise(gate: GateConfig) -> str:
    """Returns the primary operations where none of the default ones was measured."""
    if gate.names_primary:
        return ""
    return f"; of a class that has none of them, the first {MAX_PRIMARY} that it measures"


def unmatched_line(point: Unmatched) -> str:
    """Returns which side alone has a point, and why it has no partner."""
    said = f"only in the {point.side}: {point.point}"
    if not point.differs:
        return said
    return f"{said} (the nearest point of the other side differs in {'; '.join(point.differs)})"
