"""Verdicts for people: what changed and by how much, and the command that follows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.names import spoken
from orbax_bench_core.analysis.verdicts.details import by_chance, details, unmatched
from orbax_bench_core.analysis.verdicts.drawings import Named, draw_intervals
from orbax_bench_core.analysis.verdicts.headlines import (
    apart,
    headline,
    medians_disagree,
    not_looked_at,
    primary,
    remarks,
    short_names,
    some_failed,
    worst_first,
)
from orbax_bench_core.analysis.verdicts.model import PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.more import going_on
from orbax_bench_core.analysis.verdicts.reasons import why
from orbax_bench_core.analysis.verdicts.tables import answers_table, deciding, label
from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.errors import command
from orbax_bench_core.gate import FailureVerdict, StallVerdict
from orbax_bench_core.records import OverlapFinder

_MOST_ROWS: Final = 12
"""Rows of the drawing of all intervals."""
_MOST_NOTED: Final = 2
"""Notes, and points without a partner, that a terminal shows unless it is asked for all."""


def verdicts_document(
    report: VerdictReport, place: str, rules: Sequence[str] = ()
) -> pages.Document:
    """Returns verdicts for people.

    Args:
        report: The verdicts.
        place: The run directory of the candidate.
        rules: What `--rule` has changed, for the command that shows more.
    """
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
            answers_table(points),
            pages.Text(items=_few(list(map(unmatched, report.unmatched)))),
            pages.Text(_sides(report, points), "dim"),
            pages.Text(" ".join(_rare(report, points)) if points else ""),
            pages.Text(" ".join(_doubts(report, points)), "unsure"),
            pages.Text(items=_few(remarks(report)), role="unsure"),
        ),
        following=following(report, place, rules),
        details=tuple(details(report, points)),
    )


def following(report: VerdictReport, place: str, rules: Sequence[str] = ()) -> pages.Code:
    """Returns the command that helps next, and why it does."""
    separate = apart(report)  # also where nothing is in both
    pair = (report.baseline, report.candidate) if separate else (place,)
    changes = [word for rule in rules for word in ("--rule", rule)]
    details = command("compare", *pair, *changes, "--details")
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
        why = "Nothing has to be done" if passed else "Look into it before you ship"
        return pages.Code(details, f"{why}. All times and metrics:")
    in_series = "-o" in report.again
    again = report.again or ("ab", report.suite_file)
    again = again if in_series else (*again, "-o", place)
    found = [going_on(point, report.gate) for point in open_]
    ways = {each.why for each in found}
    if "unfinished" in ways:
        return pages.Code(command(*again), "It is not at its end; the same command goes on:")
    if "no_use" in ways:
        return pages.Code(details, "More operations would not do; what was measured, and what not:")
    farthest = max(found, key=lambda each: each.until)
    if ways == {"more"} and in_series:
        return pages.Code(
            details,
            f"Up to {farthest.until} operations per side would probably tell, but `{again[0]}` "
            "adds none to a comparison. All times and metrics:",
        )
    if ways == {"more"}:
        when = "When this machine is idle, u" if any(each.drifts for each in found) else "U"
        return pages.Code(
            command(*again, *farthest.flag.split()),
            f"{when}p to {farthest.until} operations per side probably tell:",
        )
    why = "No look is left" if ways == {"used_up"} else "More operations would probably not tell"
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
        rows += [(f"{name}{label(each)}", each) for each in deciding(point, points)]
    return rows[:_MOST_ROWS]


def _sides(report: VerdictReport, points: Sequence[PointVerdict]) -> str:
    sides = f"Candidate: {report.candidate}; baseline: {report.baseline}."
    paired = sum(point.mode == "paired" for point in points)
    if report.word == "REGRESSION" and paired > 1 and not report.exploratory:
        sides += f" {by_chance(report.gate, paired)}"
    every = [each for point in points for each in primary(point)]
    margins = {report.gate.rule(each.operation).margin for each in every}
    if any(map(medians_disagree, every)):
        sides += (
            " A change is of operations measured next to each other; where noise is large, "
            "medians of all can go the other way."
        )
    if any(map(some_failed, every)):
        sides += (
            " A failed attempt counts as ten times as slow as the slowest that passed; medians are "
            "of those that passed."
        )
    if report.is_study or len(margins) != 1:
        return sides
    floor = pages.seconds(report.gate.min_effect_s) if report.gate.min_effect_s else ""
    least = f"{pages.share(margins.pop())}{f' or less than {floor}' if floor else ''}"
    if any(each.verdict.low is not None or each.verdict.high is not None for each in every):
        sides += " In parentheses: 95 % interval."
    return f"{sides} Not slower: by less than {least}."


def _rare(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[str]:
    """Yields the stalls and the failures of all points, and what their counts cannot exclude."""
    stalls = [each.verdict.stalls for point in points for each in primary(point)]
    known = [found for found in stalls if found is not None]
    if known:
        yield _counted("Stalls", known, sum(each.operations for each in known), "operations")
    failures = [each for point in points if (each := point.failures) and each.attempts]
    if failures:  # a point that was never tried, as of a lost step, says nothing of them
        yield _counted("Failures", failures, sum(each.attempts for each in failures), "attempts")
        if report.word == "PASS" and _short_of_time(report):
            minutes = f"`gate.limit_minutes` ({report.gate.limit_minutes:g})"
            yield f"To exclude more would take longer than {minutes}."
    if unseen := not_looked_at(points):
        yield f"{unseen[0].upper()}{unseen[1:]}."


def _short_of_time(report: VerdictReport) -> bool:
    """Returns whether stalls or failures have no limit, as it would have taken too long."""
    gate = report.gate
    for point in report.points:
        found = [point.failures] if gate.max_failures == "auto" else []
        stalls = [each.verdict.stalls for each in primary(point) if gate.max_stalls == "auto"]
        unlimited = any(each is not None and each.limit is None for each in (*found, *stalls))
        attempts = 0 if point.failures is None else point.failures.attempts
        if unlimited and 0 < attempts < gate.fewest_of_pass(0.0):
            return True
    return False


def _counted(
    what: str, counts: Sequence[StallVerdict | FailureVerdict], of: int, units: str
) -> str:
    """Returns the sum of the counts of some series, and the largest bound of a single one."""
    candidate, baseline = (sum(getattr(each, arm) for each in counts) for arm in reversed(ARMS))
    found = f"{candidate} of the candidate, {baseline} of the baseline,"
    some = found if candidate or baseline else "none"
    bound = pages.share(max(each.bound for each in counts), 2)
    kind = "point" if units == "attempts" else "kind"
    each = f"of each {kind} " if len(counts) > 1 else ""
    return f"{what}: {some} in {of} {units} per side; {each}up to {bound} may be unseen."


def _doubts(report: VerdictReport, points: Sequence[PointVerdict]) -> Iterator[str]:
    """Yields what a reader must know before trusting the numbers."""
    if said := OverlapFinder.warning(report.not_alone, "the verdict"):
        yield f"{said}."
    yield from _drifts(points)[:1]
    if apart(report):  # so few data that numbers alone mislead
        judged = [each for point in points for each in primary(point) if each.verdict.reason]
        for each in judged[:1]:
            yield f"{spoken(each.operation).capitalize()}: {why(each.verdict.reason)}."
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
                        f"{pages.percent(abs(health.drift))} {said} during the run"
                    )
    idle = ": this machine was not idle." if found["baseline"] else "."
    return [f"{said}{idle}" for arm in ARMS for said in found[arm]]


def _few(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - _MOST_NOTED
    last = [f"{pages.count(more, 'more line')}: with --details"] if more > 0 else []
    return (*lines[:_MOST_NOTED], *last)
