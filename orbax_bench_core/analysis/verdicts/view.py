"""Verdicts for people: what changed and by how much, the command that follows, and all numbers."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import spoken
from orbax_bench_core.analysis.page_cache import other_cache
from orbax_bench_core.analysis.verdicts.drawings import Named, draw_intervals, draw_operation
from orbax_bench_core.analysis.verdicts.headlines import (
    ROLES,
    apart,
    change,
    from_to,
    headline,
    is_real,
    medians,
    nearest_to_trouble,
    not_looked_at,
    operation_told,
    primary,
    share,
    short_names,
    stamped,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.model import (
    MetricChange,
    OperationVerdict,
    PointVerdict,
    StorageTrouble,
    Unmatched,
    VerdictReport,
)
from orbax_bench_core.analysis.verdicts.more import going_on
from orbax_bench_core.config import ARMS, PER_ARM, Arm, GateConfig
from orbax_bench_core.errors import command
from orbax_bench_core.measure import CPU, OF_CPU, TIME
from orbax_bench_core.records import VERIFIED_WORDS, OverlapFinder

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
_FEW: Final = 2
"""Points up to which a table has each primary operation; of more it has the worst of each."""
_MOST_ROWS: Final = 12
"""Rows of the drawing of all intervals."""
_MOST_DRAWN: Final = 12
"""Points with drawings of their operations, if they regressed: hundreds could not be opened."""
_MOST_METRICS: Final = 32
"""Rows of metrics on a page, shared among its points."""
_MOST_NOTED: Final = 2
"""Notes, and points without a partner, that a terminal shows unless it is asked for all."""
_LONGEST: Final = 28
"""Characters of a point's name among those of others; its details have all of it."""
_SIZES: Final = {"bytes": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}


def verdicts_document(report: VerdictReport, place: str) -> pages.Document:
    """Returns verdicts for people; `place` is the run directory of the candidate."""
    points = worst_first(report.points)
    rows = _drawn_rows(points)
    used = [each.verdict.operations for point in points for each in primary(point)]
    size = f", {pages.count(max(used), 'operation')} per side" if any(used) else ""
    return pages.Document(
        about=(
            f"{report.suite}: {report.candidate} against {report.baseline}, "
            f"{report.judged_at:%Y-%m-%d %H:%M} UTC{size}"
        ),
        headline=headline(report),
        summary=(
            *([draw_intervals(rows, report.gate)] if rows else []),
            _answers(points),
            pages.Text(items=_few(list(map(_unmatched, report.unmatched)))),
            pages.Text(_sides(report, points), "dim"),
            pages.Text(" ".join(_rare(report, points)) if points else ""),
            pages.Text(" ".join(_doubts(report, points)), "unsure"),
            pages.Text(items=_few(list(report.remarks)), role="unsure"),
        ),
        following=following(report, place),
        details=tuple(_details(report, points)),
    )


def following(report: VerdictReport, place: str) -> pages.Code:
    """Returns the command that helps next, and why it does."""
    separate = apart(report)  # also where nothing is in both
    pair = (report.baseline, report.candidate) if separate else (place,)
    details = command("compare", *pair, "--details")
    open_ = [point for point in worst_first(report.points) if point.word == "INCONCLUSIVE"]
    if not report.points:
        return pages.Code(
            details, "Points are matched by id: see in what those of each side differ."
        )
    if any(found.failed for point in report.points for found in point.attempts.values()):
        return pages.Code(
            command("report", place),
            "The report has the errors of all attempts that failed, also of those that passed when "
            "they were tried again.",
        )
    if separate:
        return pages.Code(
            details,
            "For a verdict measure both sides in one place, with `orbax-bench ab`. What differs "
            "between these two:",
        )
    if report.word != "INCONCLUSIVE" or not open_ or not report.suite_file or report.exploratory:
        passed = report.word == "PASS" or report.is_study
        why = "All times and metrics:" if passed else "What else differs, metric by metric:"
        return pages.Code(details, why)
    again = ("ab", report.suite_file, "-o", place)
    found = [going_on(point, report.gate) for point in open_]
    ways = {each.why for each in found}
    if "unfinished" in ways:
        return pages.Code(command(*again), "It is not at its end; the same command goes on:")
    if "no_use" in ways:
        return pages.Code(details, "More operations would not do; what was measured, and what not:")
    if ways == {"more"}:
        farthest = max(found, key=lambda each: each.until)
        when = "When this machine is idle, u" if any(each.drifts for each in found) else "U"
        return pages.Code(
            command(*again, *farthest.flag.split()),
            f"{when}p to {farthest.until} operations per side probably tell:",
        )
    why = "No look is left" if ways == {"used_up"} else "More operations would not do"
    return pages.Code(
        command("calibrate", "--suite", report.suite_file, "-o", f"{place}-noise"),
        f"{why}. Make the operation longer, with larger data, or measure in a quieter place; "
        "how noisy this one is:",
    )


def _drawn_rows(points: Sequence[PointVerdict]) -> list[Named]:
    names = short_names(points)
    rows: list[Named] = []
    for point in points:
        name = f"{names[point.point_id]}: " if len(points) > 1 else ""
        rows += [(f"{name}{_label(each)}", each) for each in _deciding(point, points)]
    return rows[:_MOST_ROWS]


def _deciding(point: PointVerdict, points: Sequence[PointVerdict]) -> list[OperationVerdict]:
    """Returns the operations of a point that have rows among those of all points."""
    if len(points) <= _FEW:
        return primary(point) or list(point.operations)
    nearest = nearest_to_trouble(point)
    return [] if nearest is None else [nearest]


def _answers(points: Sequence[PointVerdict]) -> pages.Table:
    """Returns a row for each operation of a few points, or one for each of several."""
    if len(points) <= _FEW:
        return _operations(points, only_primary=True)
    names, rows = short_names(points), []
    for point in points:
        shown: tuple[str, ...] = ("–", "–", "–")
        if (nearest := nearest_to_trouble(point)) is not None:
            shown = (_label(nearest), from_to(nearest), change(nearest.verdict))
        rows.append(pages.Row((_cut(names[point.point_id]), *shown, _point_says(point))))
    heads = pages.columns("point", "worst", "times#", "change#", "result")
    return pages.Table(heads, tuple(rows))


def _operations(points: Sequence[PointVerdict], *, only_primary: bool = False) -> pages.Table:
    rows = []
    for point in points:
        group = _group(point) if len(points) > 1 else ""
        found = _deciding(point, ()) if only_primary else _primary_first(point)
        for each in found:
            times = medians(each)
            cells = (_label(each), times[0], times[1], change(each.verdict), _says(each, point))
            rows.append(pages.Row(cells, group, dim=not each.primary))
        if not found:
            rows.append(pages.Row(("–", "–", "–", "–", _point_says(point)), group))
    heads = ("operation", "baseline#", "candidate#", "change#", "result")
    return pages.Table(pages.columns(*heads), tuple(rows))


def _group(point: PointVerdict) -> str:
    return f"{stamped(point)} {pages.code(point.point)}"


def _primary_first(point: PointVerdict) -> list[OperationVerdict]:
    return sorted(point.operations, key=lambda operation: not operation.primary)


def _label(operation: OperationVerdict) -> str:
    name = operation.operation.replace("save_", "save, ", 1)
    cache = "" if operation.cache in ("", "unknown") else f" ({operation.cache})"
    return f"{name}{cache}"


def _says(operation: OperationVerdict, point: PointVerdict) -> pages.Cell:
    verdict, word = operation.verdict, operation.verdict.word
    stalls = word != "PASS" and verdict.endpoint == "stalls"
    if point.is_study:
        return pages.Cell(_study_says(operation))
    if word == "INCONCLUSIVE" and not (is_real(verdict.ratio) and verdict.p_regression is not None):
        said = "stalls" if stalls else "not judged" if verdict.reason else "cannot tell"
    elif stalls:
        said = "stalls"
    else:
        said = {"REGRESSION": "slower", "PASS": "not slower", "INCONCLUSIVE": "cannot tell"}[word]
    said = "faster" if word == "PASS" and verdict.faster else said
    if not operation.primary:
        return pages.Cell(f"({said})", "dim")
    return pages.Cell(f"{pages.SIGNS[ROLES[word]]} {said}", ROLES[word])


def _study_says(operation: OperationVerdict) -> str:
    low, high = operation.verdict.low or 0.0, operation.verdict.high
    high = math.inf if high is None else high
    return "faster" if high < 1 else "slower" if low > 1 else "not told apart"


def _point_says(point: PointVerdict) -> pages.Cell:
    role, nearest = ROLES[point.word], nearest_to_trouble(point)
    said = {"failures": "failures", "missing": "missing", "storage": "storage"}.get(point.endpoint)
    if point.failed:
        said = "failed"
    elif nearest is not None and nearest.verdict.word == point.word:
        return _says(nearest, point)
    return pages.Cell(f"{pages.SIGNS[role]} {said or 'not judged'}", role)


def _sides(report: VerdictReport, points: Sequence[PointVerdict]) -> str:
    sides = f"Candidate: {report.candidate}; baseline: {report.baseline}."
    paired = sum(point.mode == "paired" for point in points)
    if report.word == "REGRESSION" and paired > 1 and not report.exploratory:
        sides += f" {_by_chance(report.gate, paired)}"
    every = [each for point in points for each in primary(point)]
    margins = {report.gate.rule(each.operation).margin for each in every}
    if report.is_study or len(margins) != 1:
        return sides
    floor = pages.seconds(report.gate.min_effect_s) if report.gate.min_effect_s else ""
    least = f"{share(margins.pop())}{f' and {floor}' if floor else ''}"
    return f"{sides} In parentheses: 95 % interval. Not slower: by less than {least}."


def _rare(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[str]:
    """Yields the stalls and the failures of all points, and what their counts cannot exclude."""
    stalls = [each.verdict.stalls for point in points for each in primary(point)]
    known = [found for found in stalls if found is not None]
    if known:
        of = sum(found.operations for found in known)
        both = sum(each.candidate for each in known), sum(each.baseline for each in known)
        yield _counted("Stalls", both, of, "operations", max(found.bound for found in known))
    failures = [point.failures for point in points if point.failures is not None]
    if failures:
        of = sum(each.attempts for each in failures)
        both = sum(each.candidate for each in failures), sum(each.baseline for each in failures)
        yield _counted("Failures", both, of, "attempts", max(each.bound for each in failures))
        if report.word == "PASS" and _short_of_time(report):
            minutes = f"`gate.limit_minutes` ({report.gate.limit_minutes:g})"
            yield f"To exclude more would take longer than {minutes}."
    if unseen := not_looked_at(points):
        yield f"{unseen[0].upper()}{unseen[1:]}."


def _short_of_time(report: VerdictReport) -> bool:
    """Returns whether stalls and failures have no limit, as it would have taken too long."""
    gate = report.gate
    return "auto" in (gate.max_stalls, gate.max_failures) and any(
        point.failures is not None and point.failures.attempts < gate.fewest_of_pass(0.0)
        for point in report.points
    )


def _counted(what: str, both: tuple[int, int], of: int, units: str, bound: float) -> str:
    candidate, baseline = both
    found = f"{candidate} of the candidate, {baseline} of the baseline,"
    some = found if candidate or baseline else "none"
    return f"{what}: {some} in {of} {units} per side; up to {share(bound, 2)} may be unseen."


def _doubts(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[str]:
    """Yields what a reader must know before trusting the numbers."""
    if said := OverlapFinder.warning(report.not_alone, "the verdict"):
        yield f"{said}."
    yield from _drifts(points)[:1]
    if apart(report):  # so few data that numbers alone mislead
        reasons = (each.verdict.reason for point in points for each in primary(point))
        yield from [f"{reason}." for reason in reasons if reason][:1]
    for point in points:
        if weak := [arm for arm, found in point.verified.items() if found in ("itself", "none")]:
            which = "both sides" if len(weak) > 1 else f"the {weak[0]}"
            yield f"What {which} restored was not verified: see the details."
            break
    for point in points:
        if flagged := [trouble for trouble in point.storage if sum(trouble.flagged.values())]:
            counts = [f"{flagged[0].flagged.get(arm, 0)} of the {arm}" for arm in ARMS]
            yield f"Storage made trouble in samples of {flagged[0].operation}: {', '.join(counts)}."
            break


def _drifts(points: Iterable[PointVerdict]) -> list[str]:
    """Returns a sentence for each drift of the times of a primary operation, baselines first."""
    found: dict[Arm, list[str]] = {arm: [] for arm in ARMS}
    for point in points:
        for each in primary(point):
            for arm, health in each.health.items():
                if health.drifts and health.drift is not None:
                    said = "slower" if health.drift > 0 else "faster"
                    found[arm].append(
                        f"{spoken(each.operation).capitalize()} of the {arm} became "
                        f"{abs(100 * health.drift):.0f} % {said} during the run"
                    )
    idle = ": this machine was not idle." if found["baseline"] else "."
    return [f"{said}{idle}" for arm in ARMS for said in found[arm]]


def _by_chance(gate: GateConfig, points: int) -> str:
    """Returns how many points of such a run end in REGRESSION though nothing differs."""
    expected = gate.false_alarms * (1 if gate.family == "suite" else points)
    if expected < 1:
        return f"Where nothing differs, at most {share(expected)} of such runs have a REGRESSION."
    return f"Where nothing differs, such a run has up to {expected:.2g} REGRESSION on average."


def _few(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - _MOST_NOTED
    last = [f"{pages.count(more, 'more line')}: with --details, or on the page"] if more > 0 else []
    return (*lines[:_MOST_NOTED], *last)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _unmatched(found: Unmatched) -> str:
    differs = f"; the nearest differs in {'; '.join(found.differs)}" if found.differs else ""
    return f"only in the {found.side}: {found.point}{differs}"


def _details(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[pages.Element]:
    gate = report.gate
    if report.is_study and any("Orbax" in point.systems.values() for point in points):
        yield pages.Text(_PUBLISHED, "dim")
    several = len(points) > _FEW
    every = _operations(points) if several or any(_aside(point) for point in points) else None
    yield pages.Details("Every operation", () if every is None else (every,))
    yield pages.Details(
        "What each result rests on, and what would help",
        tuple(
            pages.Text(f"{_group(point)} {point.point_id}", items=tuple(_findings(point, gate)))
            for point in points
        ),
    )
    drawn = [
        _drawings(point, gate, several=several)
        for at, point in enumerate(points[:_MOST_DRAWN])
        if at < _FEW or point.word == "REGRESSION"
    ]
    yield pages.Details("All times, in the order measured", tuple(drawn))
    yield pages.Details("Exact numbers, by their names in verdicts.json", tuple(_exact(points)))
    measured = sum(len(point.metrics) for point in points)
    note = pages.Text(_METRICS_NOTE if measured else "", "dim")
    of_all = f"What differs most of {pages.count(measured, 'metric')}"
    yield pages.Details(of_all, (_metrics(points), note))
    notes = (*report.remarks, *map(_unmatched, report.unmatched))
    yield pages.Details("Notes, and points without a partner", (pages.Text(items=notes),))
    yield pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),))
    chance = (_by_chance(gate, max(1, len(points))),)
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
    found = _primary_first(point)
    return [each for each in found if each.primary or each.verdict.word == "REGRESSION"] or found


def _aside(point: PointVerdict) -> bool:
    return not all(operation.primary for operation in point.operations)


def _findings(point: PointVerdict, gate: GateConfig) -> Iterator[str]:
    """Yields what was found of a point and of each operation, and how it was measured."""
    if point.reason:
        yield point.reason
    if point.exploratory:
        yield "rules that are chosen after the data prove nothing: measure again with these rules"
    for each in _primary_first(point):
        said = [operation_told(each, point, gate), each.verdict.reason]
        said = said[: 1 if each.verdict.reason in said[0] else 2]
        yield f"{pages.code(each.operation)}: {'; '.join([*said, *_helps(each, point, gate)])}"
        yield from (f"{pages.code(each.operation)}, {line}" for line in _flags(each))
    for arm, found in point.attempts.items():
        first = f", first in {found.example}" if found.example else ""
        failed = f"{found.failed or 'none'} of {pages.count(found.count, 'first attempt')} failed"
        at = point.failed_at.get(arm, ())
        places = f" (number {', '.join(str(each + 1) for each in at)})" if at else ""
        yield f"{arm}: {failed}{places}{first}"
    yield from filter(None, (*map(_storage, point.storage), point.switching))
    yield from _measured(point)
    if verified := _verification(point):
        yield verified
    yield from filter(None, [other_cache(each.cache for each in point.operations)])


def _helps(operation: OperationVerdict, point: PointVerdict, gate: GateConfig) -> Iterator[str]:
    """Yields what else is known of an operation, and what would help to tell more."""
    verdict, rule = operation.verdict, gate.rule(operation.operation)
    floor = pages.seconds(rule.min_effect_s)
    if verdict.bound == "floor":
        yield f"a slow-down below {floor} does not count here"
    if operation.false_discovery is not None and verdict.word == "REGRESSION":
        yield f"false discovery rate {share(operation.false_discovery)}"
    if verdict.word == "PASS" and verdict.ratio is not None and (verdict.low or 0) > 1:
        limit = "min_effect_s" if verdict.bound == "floor" else "margin"
        likely = pages.change(verdict.ratio)
        yield f"one of about {likely} is likely; if that matters, lower `gate.{limit}`"
    if verdict.word == "INCONCLUSIVE" and verdict.detectable is not None:
        usual = verdict.detectable_80 or verdict.detectable
        yield (
            f"with {pages.count(verdict.operations, 'operation')} per side a slow-down of "
            f"{share(usual)} is found 8 times in 10, one of {share(verdict.detectable)} 9 in 10"
        )
    if verdict.word != "PASS" and verdict.endpoint == "stalls":
        yield _SEEK
    if not operation.primary:
        yield "it decides nothing; if it matters, name it in `gate.primary`"
    elif verdict.word == "INCONCLUSIVE" and point.mode == "paired" and not point.failed:
        if verdict.settled and not verdict.more_blocks and verdict.endpoint == "time":
            yield (
                "more operations would not do: make it longer, with larger data, measure in a "
                "quieter place, set `gate.min_effect_s`, or take it out of `gate.primary`"
            )
        elif verdict.more_blocks:
            yield f"about {pages.count(verdict.more_blocks, 'more block')} would tell"
        elif not verdict.settled and point.next_look is not None:
            yield f"the next look is at {pages.count(point.next_look, 'operation')} per side"


def _flags(operation: OperationVerdict) -> list[str]:
    of_arms: dict[str, list[str]] = {}
    for arm, health in operation.health.items():
        for flag in health.flags:
            of_arms.setdefault(flag, []).append(arm)
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
        known = "" if design.left_open is None else f", by up to {share(design.left_open)} (95 %)"
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


def _verification(point: PointVerdict) -> str:
    each = [f"{arm} {VERIFIED_WORDS[found]}" for arm, found in point.verified.items()]
    return "; ".join(each)


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
            pages.Row((name, *(numbers.get(name, "–") for numbers in found)), _group(point))
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


_METRICS_NOTE: Final = (
    "Median over the repeats on the worst host; where no direction is better, the mean over the "
    "hosts. Of a baseline without repeats only means are known. Apart: the chance that a value of "
    "the candidate is above one of the baseline, less that it is below. No test was made of a "
    "change; that of a time that was judged is the one of its verdict."
)


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
            _group(point) if len(points) > 1 else "",
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
    return "from 0" if metric.delta is None else f"{100 * metric.delta:+.3g} %"


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
        return share(value)
    if isinstance(value, float) and name.endswith("min_effect_s"):
        return pages.seconds(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
