"""Document of a goodput plan: ways to save side by side, intervals, and what is lost."""

from orbax_bench_core import document as doc
from orbax_bench_core.plan.goodput.job import Job
from orbax_bench_core.plan.goodput.log import JobLog
from orbax_bench_core.plan.goodput.strategies import GoodputPlan, Strategy

_READING = (
    "Goodput is the useful share of all time: work that no failure took back.",
    "The interval is the useful time between two saves, without the saves.",
    "Near the best interval goodput hardly changes: half or twice as much costs little.",
    "Failures are taken to come at random, as often as given.",
)


def goodput_document(plan: GoodputPlan, log: JobLog | None = None) -> doc.Document:
    """Returns a goodput plan for people, beside what the job's own log says."""
    best = plan.best
    elements: tuple[doc.Element, ...] = (
        doc.Heading("Goodput", level=1),
        doc.Paragraph(
            f"Save {_NAMES[best.name]}, every {duration(best.interval_s)}"
            f"{_local(best)}: {best.goodput:.1%} of the time is useful.",
            "good",
        ),
        doc.Facts((*_facts(plan.job), ("interval by Young", duration(plan.young_s)))),
        *_log(log),
        doc.Heading("Ways to save"),
        _table(plan),
        doc.Section("How to read this", (doc.Items(_READING),)),
    )
    return doc.Document(title="Goodput", elements=elements)


_NAMES = {
    "sync": "in one go",
    "async": "in the background",
    "continuous": "in the background without a pause",
    "multi-tier": "in two tiers",
}


def duration(seconds: float) -> str:
    """Returns a duration in the unit that people would use."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return doc.seconds(seconds)


def _local(strategy: Strategy) -> str:
    if strategy.local_interval_s is None:
        return ""
    return f" to storage and every {duration(strategy.local_interval_s)} to local disks"


def _facts(job: Job) -> tuple[tuple[str, doc.Text], ...]:
    found: list[tuple[str, doc.Text]] = [
        ("a failure every", duration(job.mtbf_s)),
        ("recovery", duration(job.recovery_s)),
        ("a save blocks", f"{duration(job.blocking_s)}, or {duration(job.save_s)} in one go"),
        (
            "in the background",
            f"{duration(job.background_s)}, which take {job.slowdown:.0%} of the speed",
        ),
    ]
    if job.local is not None:
        blocks, takes = duration(job.local.blocking_s), duration(job.local.recovery_s)
        share = f"{job.local.share:.0%} of failures leave it"
        found.append(("local tier", f"a save blocks {blocks}, a recovery takes {takes}, {share}"))
    return tuple(found)


def _log(log: JobLog | None) -> tuple[doc.Element, ...]:
    if log is None:
        return ()

    def known(value: float | None) -> str:
        return "unknown" if value is None else duration(value)

    lost = "unknown" if log.lost_steps is None else f"{log.lost_steps:g}"
    useful = "unknown" if log.goodput is None else f"{log.goodput:.1%}"
    facts: tuple[tuple[str, doc.Text], ...] = (
        ("length", f"{duration(log.wall_s)}, of which {useful} was useful"),
        ("steps", f"{log.steps}, {known(log.step_s)} each"),
        (
            "stalls by saves",
            f"{log.stalls}, {known(log.blocking_s)} each, one every {known(log.interval_s)}",
        ),
        ("failures", f"{log.failures}, recovery {known(log.recovery_s)}, {lost} steps lost"),
    )
    notes = (doc.Paragraph(note, "dim") for note in log.notes)
    return (doc.Section("The log", (doc.Facts(facts), *notes)),)


def _table(plan: GoodputPlan) -> doc.Table:
    columns = [
        doc.Column("way", "fixed"),
        doc.Column("interval", "fixed"),
        doc.Column("steps", "number"),
        doc.Column("goodput", "number"),
    ]
    if plan.job.devices is not None:
        columns.append(doc.Column("wasted device-hours a day", "number"))
    return doc.Table(tuple(columns), tuple(_row(plan, found) for found in plan.strategies))


def _row(plan: GoodputPlan, found: Strategy) -> doc.Row:
    step, hours = plan.job.step_s, plan.wasted_device_hours(found)
    local = "" if found.local_interval_s is None else f", {duration(found.local_interval_s)} local"
    cells: list[doc.Text] = [
        found.name if found.is_best else f"{found.name}, as it is",
        f"{duration(found.interval_s)}{local}",
        "–" if step is None else f"{max(1, round(found.interval_s / step)):,}",
        f"{found.goodput:.1%}",
    ]
    if hours is not None:
        cells.append(f"{hours:,.1f}")
    return doc.Row(tuple(cells), dim=not found.is_best)
