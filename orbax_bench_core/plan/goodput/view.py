"""Goodput plans for people: how often to save, ways to save side by side, and what is lost."""

from collections.abc import Iterator
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.plan.goodput.job import Job
from orbax_bench_core.plan.goodput.log import JobLog
from orbax_bench_core.plan.goodput.strategies import GoodputPlan, Strategy

_READING: Final = (
    "Goodput is the useful share of all time: work that no failure took back.",
    "The interval is the useful time between two saves, without the saves.",
    "Near the best interval goodput hardly changes: half or twice as much costs little.",
    "Failures are taken to come at random, as often as given.",
)
_NAMES: Final = {
    "sync": "in one go",
    "async": "in the background",
    "continuous": "in the background without a pause",
    "multi-tier": "in two tiers",
}


def goodput_document(plan: GoodputPlan, log: JobLog | None = None) -> pages.Document:
    """Returns a goodput plan for people, next to what the job's own log says."""
    best, young = plan.best, duration(plan.young_s)
    local = ""
    if best.local_interval_s is not None:
        local = f" to storage and every {duration(best.local_interval_s)} to local disks"
    said = (
        f"Save {_NAMES[best.name]}, every {duration(best.interval_s)}{local}: "
        f"{pages.percent(best.goodput, 1)} of the time is useful"
    )
    given = [found for found in plan.strategies if not found.is_best]
    if given:
        today = max(given, key=lambda found: found.goodput)
        said += f"; every {duration(today.interval_s)}, as it is, {pages.percent(today.goodput, 1)}"
    about_log = () if log is None else (pages.Text(items=tuple(_log(log))),)
    return pages.Document(
        about=f"Goodput with a failure every {duration(plan.job.mtbf_s)}",
        headline=pages.Callout("", f"{said}."),
        summary=(_table(plan),),
        details=(
            pages.Details("The job", (pages.Text(items=(*_facts(plan.job), f"Young: {young}.")),)),
            pages.Details("The log", about_log),
            pages.Details("How to read this", (pages.Text(items=_READING),)),
        ),
    )


def duration(seconds: float) -> str:
    """Returns a duration in the unit that people would use."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{pages.digits(seconds / size)} {unit}"
    return pages.seconds(seconds)


def _facts(job: Job) -> Iterator[str]:
    """Yields what the plan was made from, a line each."""
    yield f"A failure every {duration(job.mtbf_s)}; a recovery takes {duration(job.recovery_s)}."
    yield f"A save blocks {duration(job.blocking_s)}, or {duration(job.save_s)} in one go."
    taken = pages.percent(job.slowdown)
    yield f"In the background it takes {duration(job.background_s)}, and {taken} of the speed."
    if job.local is not None:
        blocks, takes = duration(job.local.blocking_s), duration(job.local.recovery_s)
        yield (
            f"To local disks a save blocks {blocks}, and a recovery from them takes {takes}; "
            f"{pages.percent(job.local.share)} of failures leave them."
        )


def _log(log: JobLog) -> Iterator[str]:
    def known(value: float | None) -> str:
        return "unknown" if value is None else duration(value)

    lost = "unknown" if log.lost_steps is None else f"{log.lost_steps:g}"
    useful = "unknown" if log.goodput is None else pages.percent(log.goodput, 1)
    yield f"Length: {duration(log.wall_s)}, of which {useful} was useful."
    yield f"Steps: {log.steps}, {known(log.step_s)} each."
    yield (
        f"Stalls by saves: {log.stalls}, {known(log.blocking_s)} each, one every "
        f"{known(log.interval_s)}."
    )
    yield f"Failures: {log.failures}, recovery {known(log.recovery_s)}, {lost} steps lost."
    yield from log.notes


def _table(plan: GoodputPlan) -> pages.Table:
    headings = ["way", "interval", "steps#", "goodput#"]
    if plan.job.devices is not None:
        headings.append("wasted device-hours a day#")
    rows = tuple(_row(plan, found) for found in plan.strategies)
    return pages.Table(pages.columns(*headings), rows)


def _row(plan: GoodputPlan, found: Strategy) -> pages.Row:
    step, hours = plan.job.step_s, plan.wasted_device_hours(found)
    local = "" if found.local_interval_s is None else f", {duration(found.local_interval_s)} local"
    cells = (
        found.name if found.is_best else f"{found.name}, as it is",
        f"{duration(found.interval_s)}{local}",
        "–" if step is None else f"{max(1, round(found.interval_s / step)):,}",
        pages.percent(found.goodput, 1),
        *(() if hours is None else (f"{hours:,.1f}",)),
    )
    return pages.Row(cells, dim=not found.is_best)
