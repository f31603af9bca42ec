"""Details of a verdict, folded on its page: what each result rests on, and all numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.analysis.verdicts.drawings import draw_operation
from orbax_bench_core.analysis.verdicts.headlines import (
    is_real,
    nearest_to_trouble,
    operation_told,
    primary,
    remarks,
    tells_why,
)
from orbax_bench_core.analysis.verdicts.model import (
    MetricChange,
    OperationVerdict,
    PointVerdict,
    StorageTrouble,
    Unmatched,
    VerdictReport,
)
from orbax_bench_core.analysis.verdicts.reasons import in_block, why
from orbax_bench_core.analysis.verdicts.tables import (
    FEW,
    operations_table,
    point_title,
    primary_first,
)
from orbax_bench_core.config import ARMS, PER_ARM, GateConfig
from orbax_bench_core.gate import Verdict
from orbax_bench_core.measure import CPU, OF_CPU, TIME
from orbax_bench_core.records import VERIFIED_WORDS

READING: Final = """\
Three things are judged: the typical time of each primary operation, its stalls, and the attempts \
of the point that failed or hung. A point is REGRESSION if one of them is, and PASS if all pass.
The change is that of the candidate against the baseline: + is slower. The true change lies within \
the interval in at least 95 of 100 such comparisons, however early they ended. Where the interval \
has one end only, too few blocks rule out anything on the other side.
The change itself is the best guess. It leans to the verdict, because a comparison ends when the \
data look clear. It is one of blocks, so it need not agree with the medians to the last digit; of \
sides that were measured apart it is the change of the medians.
A stall is an operation far above the median of both sides: by half at least, and by more than the \
usual spread. The typical time does not show a few of them.
PASS rules out a slow-down of the margin, and says which share of stalls and failures it cannot \
exclude. Faster is said only where a candidate as slow as the baseline is ruled out.
Only first attempts count. One that failed or hung counts as slower than all others, and as a \
stall; a retry is kept to find the cause.
In (parentheses): operations that are not primary. They decide nothing.
Sides that were measured apart differ by all else that changed meanwhile, too."""
"""Reading aid, one line each."""
_PUBLISHED: Final = (
    "Published by Orbax's authors for Llama 3.1 on GPUs and in the cloud: saves up to 3.5 times "
    "and loads up to 2 times as fast as PyTorch, 0.29x and 0.5x. Machine, storage, sizes and "
    "number of processes are others here; docs/frameworks.md says what differs."
)
_SEEK: Final = (
    "look at the operations that stall for retries and throttling of the storage, other work on "
    "the machine, and what the candidate does that the baseline does not"
)
_RULES: Final = {
    "tolerance": "REGRESSION says that the slow-down is larger",
    "margin": "PASS says that the slow-down is smaller",
    "min_effect_s": "a slow-down below it does not count, so the interval need not agree",
    "max_stalls": "PASS excludes more stalls than that beyond the baseline's",
    "max_failures": "the same of failed first attempts",
    "limit_minutes": "as far as `auto` limits reach",
    "alpha": "of REGRESSION by times within the tolerance, over all looks, and of that by stalls",
    "pass_alpha": "of PASS at the margin, over all looks",
    "looks": "operations per side; with lives rounded to whole blocks",
    "draws": "orders of the sides drawn for each test",
    "primary": "these decide; without any of them, the first three that a class measures",
    "family": "what shares alpha (Holm): the operations of a point, or of all points",
}
"""Meaning of the rules that need one, by key."""
_SHARES: Final = ("tolerance", "margin", "max_stalls", "max_failures", "alpha", "pass_alpha")
_MOST_DRAWN: Final = 12
"""Points with drawings of their operations, if they regressed: hundreds could not be opened."""
_MOST_METRICS: Final = 32
"""Rows of metrics on a page, shared among its points."""
_SIZES: Final = {"bytes": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_METRICS_NOTE: Final = (
    "Median over the repeats on the worst host; where no direction is better, the mean over the "
    "hosts. Of a baseline without repeats only means are known. Apart: the chance that a value of "
    "the candidate is above one of the baseline, less that it is below. No test was made of a "
    "change; that of a time that was judged is the one of its verdict."
)


def by_chance(gate: GateConfig, points: int) -> str:
    """Returns how many points of such a run end in REGRESSION though nothing differs."""
    expected = gate.false_alarms * (1 if gate.family == "suite" else points)
    if expected < 1:
        most = pages.share(expected)
        return f"Where nothing differs, at most {most} of such runs have a REGRESSION."
    most = pages.digits(expected, 2)
    return f"Where nothing differs, such a run has up to {most} REGRESSION on average."


def unmatched(found: Unmatched) -> str:
    """Returns a point that only one side has, and what its nearest one differs in."""
    differs = f"; the nearest differs in {'; '.join(found.differs)}" if found.differs else ""
    name = f"{found.point} {found.point_id}".rstrip()
    return f"only in the {found.side}: {name}{differs}"


def details(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[pages.Element]:
    """Yields what a page folds below the answer; `points` are in the order of the answer."""
    gate = report.gate
    if report.is_study and any("Orbax" in point.systems.values() for point in points):
        yield pages.Text(_PUBLISHED, "dim")
    several = len(points) > FEW
    aside = any(not each.primary for point in points for each in point.operations)
    yield pages.Details("Every operation", (operations_table(points),) if several or aside else ())
    yield pages.Details(
        "What each result rests on, and what would help",
        tuple(
            pages.Text(
                f"{point_title(point)} {point.point_id}", items=tuple(_findings(point, gate))
            )
            for point in points
        ),
    )
    drawn = [
        _drawings(point, gate, several=several)
        for at, point in enumerate(points[:_MOST_DRAWN])
        if at < FEW or point.word == "REGRESSION"
    ]
    yield pages.Details("All times, in the order measured", tuple(drawn))
    # All numbers of many points would be most of the page; they are in the file in any case.
    of = f" of the {FEW} worst points" if len(points) > FEW else ""
    exact = tuple(_exact(points[:FEW]))
    yield pages.Details(f"Exact numbers{of}, by their names in verdicts.json", exact)
    measured = sum(len(point.metrics) for point in points)
    note = pages.Text(_METRICS_NOTE if measured else "", "dim")
    of_all = f"What differs most of {pages.count(measured, 'metric')}"
    yield pages.Details(of_all, (_metrics(points), note))
    notes = (*remarks(report), *map(unmatched, report.unmatched))
    yield pages.Details("Notes, and points without a partner", (pages.Text(items=notes),))
    yield pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),))
    chance = (by_chance(gate, max(1, len(points))),)
    yield pages.Details("The rules that were applied", (_rules(gate), pages.Text(items=chance)))
    yield pages.Text(f"Run {report.run_id}. Every number is in `verdicts.json`.", "dim")


def _drawings(point: PointVerdict, gate: GateConfig, *, several: bool) -> pages.Section:
    drawn = _telling(point)
    if several and (nearest := nearest_to_trouble(point)) is not None:
        drawn = [nearest]
    charts = (chart for each in drawn for chart in draw_operation(point, each, gate))
    return pages.Section(pages.code(point.point), tuple(charts))


def _telling(point: PointVerdict) -> list[OperationVerdict]:
    """Returns the operations that decide or regressed; all numbers of others are in the file."""
    found = primary_first(point)
    return [each for each in found if each.primary or each.verdict.word == "REGRESSION"] or found


def _findings(point: PointVerdict, gate: GateConfig) -> Iterator[str]:
    """Yields what was found of a point and of each operation, and how it was measured."""
    if point.reason:
        yield why(point.reason)
    if point.exploratory:
        yield "rules that are chosen after the data prove nothing: measure again with these rules"
    for each in primary_first(point):
        said = [operation_told(each, point, gate)]
        if each.verdict.reason and not tells_why(each, point):
            said.append(why(each.verdict.reason))
        yield f"{pages.code(each.operation)}: {'; '.join([*said, *_helps(each, point, gate)])}"
        yield from (f"{pages.code(each.operation)}, {line}" for line in _flags(each))
    for arm, found in point.attempts.items():
        first = f", first in {in_block(found.block, found.example)}" if found.example else ""
        failed = f"{found.failed or 'none'} of {pages.count(found.count, 'first attempt')} failed"
        at = point.failed_at.get(arm, ())
        places = f" (number {', '.join(str(each + 1) for each in at)})" if at else ""
        yield f"{arm}: {failed}{places}{first}"
    yield from filter(None, (*map(_storage, point.storage), why(point.switching)))
    yield from _measured(point)
    if point.verified:
        yield "; ".join(f"{arm} {VERIFIED_WORDS[found]}" for arm, found in point.verified.items())
    yield from filter(None, [other_cache(each.cache for each in point.operations)])


def _helps(operation: OperationVerdict, point: PointVerdict, gate: GateConfig) -> Iterator[str]:
    """Yields what else is known of an operation, and what would help to tell more."""
    verdict, rule = operation.verdict, gate.rule(operation.operation)
    floor = pages.seconds(rule.min_effect_s)
    if verdict.bound == "floor":
        yield f"a slow-down below {floor} does not count here"
    if operation.false_discovery is not None and verdict.word == "REGRESSION":
        yield f"false discovery rate {pages.share(operation.false_discovery)}"
    if verdict.word == "PASS" and verdict.ratio is not None and (verdict.low or 0) > 1:
        limit = "min_effect_s" if verdict.bound == "floor" else "margin"
        likely = pages.change(verdict.ratio)
        yield f"one of about {likely} is likely; if that matters, lower `gate.{limit}`"
    if verdict.word == "INCONCLUSIVE":
        yield from _found(verdict, point)
    if verdict.word != "PASS" and verdict.endpoint == "stalls":
        yield _SEEK
    if not operation.primary:
        yield "it decides nothing; if it matters, name it in `gate.primary`"
    elif verdict.word == "INCONCLUSIVE" and point.mode == "paired" and not point.failed:
        if verdict.settled and not verdict.more_blocks and verdict.endpoint == "time":
            yield (
                "more operations would probably not tell: make it longer, with larger data, "
                "measure in a quieter place, set `gate.min_effect_s`, or take it out of "
                "`gate.primary`"
            )
        elif verdict.more_blocks:
            yield f"about {pages.count(verdict.more_blocks, 'more block')} would tell"
        elif not verdict.settled and point.next_look is not None:
            yield f"the next look is at {pages.count(point.next_look, 'operation')} per side"


def _found(verdict: Verdict, point: PointVerdict) -> Iterator[str]:
    """Yields how large a slow-down is found; of runs apart it is a limit, and has no power."""
    if verdict.detectable is None:
        return
    if point.mode == "paired":
        usual = verdict.detectable_80 or verdict.detectable
        yield (
            f"with {pages.count(verdict.operations, 'operation')} per side a slow-down of "
            f"{pages.share(usual)} is found 8 times in 10, one of "
            f"{pages.share(verdict.detectable)} 9 in 10"
        )
    elif not verdict.reason:
        counts = pages.change(1 + verdict.detectable)
        yield f"a slow-down counts from {counts} on, by how far past runs differ"


def _flags(operation: OperationVerdict) -> list[str]:
    of_arms: dict[str, list[str]] = {}
    for arm, health in operation.health.items():
        for flag in health.flags:
            of_arms.setdefault(why((flag,)), []).append(arm)
    return [
        f"{'both sides' if len(arms) > 1 else arms[0]}: {flag}" for flag, arms in of_arms.items()
    ]


def _measured(point: PointVerdict) -> Iterator[str]:
    """Yields which worker processes measured a point."""
    design, blocks = point.design, pages.count(point.blocks, "block")
    if design is None:
        yield blocks if point.blocks else "the two sides were measured apart"
        return
    if (per := design.blocks_per_process) is not None:
        number = pages.count(-(-point.blocks // per), "worker process", "worker processes")
        judged = max((each.verdict.operations for each in point.operations), default=0) // PER_ARM
        those = -(-judged // per)
        said = f"{number} of both sides, {pages.count(per, 'block')} each"
        yield f"{blocks}: {said}; what differs between the first {those} is in the interval"
    elif design.workers == "shared":
        yield f"{blocks}: one worker process for both sides, which the verdict is about"
    elif design.workers == "one_per_arm":
        left = design.left_open
        known = "" if left is None else f", by up to {pages.share(left)} (95 %)"
        yield f"{blocks}: a process per side, whose offset counts as a difference{known}"
    else:
        lives = pages.count(point.blocks * PER_ARM, "life", "lives")
        of = pages.count(design.operations_per_life, "operation")
        yield f"{blocks}: {lives} per side, each a process of its own with {of}"
    if design.after:
        yield (
            f"in the {pages.count(design.after, 'block')} before them both sides shared workers, "
            "and an operation may have paid for the one before it: these are not judged"
        )
    if point.continued:
        cut = pages.count(point.continued, "life was", "lives were")
        yield f"{cut} continued in a new process after an interruption"


def _storage(trouble: StorageTrouble) -> str:
    each = []
    for arm in ARMS:
        kinds = ", ".join(f"{kind}: {n}" for kind, n in trouble.counts.get(arm, {}).items())
        of = f"{trouble.flagged.get(arm, 0)} of {trouble.repeats.get(arm, 0)} samples of the {arm}"
        each.append(f"{of}{f' ({kinds})' if kinds else ''}")
    chance = "" if trouble.p_value is None else f" (p = {trouble.p_value:.2g})"
    more = "alike in both" if trouble.more is None else f"more often in the {trouble.more}"
    return (
        f"{trouble.operation}: storage made trouble in {' and '.join(each)}, {more}{chance}; they "
        "count as they are"
    )


def _number(value: float | None, figures: str = ".4g") -> str:
    return "–" if value is None else f"{value:{figures}}"


def _exact(points: Sequence[PointVerdict]) -> Iterator[pages.Element]:
    """Yields every number of each operation by its name in the file, an operation a column."""
    for point in points:
        operations = _telling(point)
        found = [
            dict(_numbers_in({**each.verdict.model_dump(), "health": each.model_dump()["health"]}))
            for each in operations
        ]
        names = dict.fromkeys(name for numbers in found for name in numbers)
        rows = [
            pages.Row((name, *(numbers.get(name, "–") for numbers in found)), point_title(point))
            for name in names
        ]
        heads = (f"{each.operation}#" for each in operations)
        yield pages.Table(pages.columns("name`", *heads), tuple(rows))
        failures = {} if point.failures is None else point.failures.model_dump()
        said = ", ".join(f"{name} {number}" for name, number in _numbers_in(failures))
        yield pages.Text(f"Failed first attempts: {said}" if said else "", "dim")


def _numbers_in(data: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _numbers_in(value, f"{within}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{within}{name}", _number(value)


def _most_different(point: PointVerdict) -> list[MetricChange]:
    """Returns the metrics by how little the values of both sides overlap, those of one side last.

    Those of the operations that decide come first: their seconds, then the times inside them.
    """
    deciding = {operation.operation for operation in primary(point)}

    def order(metric: MetricChange) -> tuple[bool, bool, int, float, float]:
        was, now = metric.baseline, metric.candidate
        is_time = metric.unit == "s" and metric.better == "lower"
        amount = abs(metric.delta or 0.0)
        if was is not None and now is not None and is_time:
            amount = abs(now - was)
        return (
            was is None or now is None,
            metric.operation.partition("[")[0] not in deciding,
            0 if metric.metric == TIME else 2 - is_time,
            -abs(metric.apart or 0.0),
            -amount,
        )

    return sorted((each for each in point.metrics if each.baseline != each.candidate), key=order)


def _metrics(points: Sequence[PointVerdict]) -> pages.Table:
    heads = ("metric`", "baseline, n#", "candidate, n#", "change#", "apart#", "better")
    most = max(5, _MOST_METRICS // max(1, len(points)))
    rows = [
        pages.Row(
            (
                f"{each.operation} {each.metric}",
                f"{_value(each.baseline, each.unit)}, {each.repeats.get('baseline', 0)}",
                f"{_value(each.candidate, each.unit)}, {each.repeats.get('candidate', 0)}",
                _judged_change(point, each) or _delta(each),
                _number(each.apart, "+.2g"),
                "–" if each.better == "none" else each.better,
            ),
            point_title(point) if len(points) > 1 else "",
        )
        for point in points
        for each in _most_different(point)[:most]
    ]
    return pages.Table(pages.columns(*heads), tuple(rows))


def _judged_change(point: PointVerdict, metric: MetricChange) -> str:
    """Returns the change of an operation's verdict; empty for what has none of its own."""
    judged = {TIME: metric.operation, CPU: f"{metric.operation}{OF_CPU}"}.get(metric.metric)
    of_time = (each.operation for each in point.metrics if each.metric == TIME)
    # What a repeat does several times is judged by its sum, which is no metric of one of them.
    if sum(name.partition("[")[0] == metric.operation for name in of_time) > 1:
        return ""
    ratios = [each.verdict.ratio for each in point.operations if each.operation == judged]
    return "".join(pages.change(ratio) for ratio in ratios if is_real(ratio))


def _delta(metric: MetricChange) -> str:
    if metric.baseline is None or metric.candidate is None:
        return "one side"
    return "from 0" if metric.delta is None else pages.share(metric.delta, sign="+")


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    size, per, _ = unit.partition("/s")
    if unit == "s":
        return pages.seconds(value)
    if size in _SIZES:
        return f"{pages.num_bytes(value * _SIZES[size])}{per}"
    return f"{pages.digits(value)} {'' if unit in ('count', 'ratio') else unit}".rstrip()


def _rules(gate: GateConfig) -> pages.Table:
    rules = gate.model_dump(mode="json", exclude={"metrics"})
    for operation, own in gate.metrics.items():
        given = own.model_dump(exclude_none=True)
        rules |= {f"metrics.{operation}.{name}": value for name, value in given.items()}
    rows = (
        pages.Row((name, _rule(name, value), _RULES.get(name, "")))
        for name, value in rules.items()
        if value is not None
    )
    return pages.Table(pages.columns("rule`", "value", "meaning~"), tuple(rows))


def _rule(name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float) and name.rpartition(".")[2] in _SHARES:
        return pages.share(value)
    if isinstance(value, float) and name.endswith("min_effect_s"):
        return pages.seconds(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
