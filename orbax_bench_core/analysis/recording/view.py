"""A diagnosis for people: what is wrong first, then what saves cost, then all the rest."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.recording import model
from orbax_bench_core.analysis.recording.findings import of_the_time
from orbax_bench_core.errors import command, listed

READING: Final = """\
The caller's time is that of a clock around the call. Orbax's own `blocking` events leave out the \
removal of old steps, and are not what the caller waits for in v1 saves and in loads.
Waiting for the previous save is part of the call. `background` is what goes on after it.
A host's own writes are those that Orbax times without waiting for other hosts.
Memory is the level before each save, of the longest life; its growth is judged by the rule of \
`orbax-bench soak`, which takes 200 saves of one process.
Steps next to a background save are compared with those that nothing overlaps, without the calls \
to Orbax in them; whole intervals between saves are drawn, so that slow minutes do not count as \
many.
A log tells only what Orbax, or ml-goodput-measurement, has written to it. Times without \
a zone are taken as UTC.
A stall is a save beyond five medians and three times what nine of ten stay below, and a second.
Saves that overlap share counters of the process: their bytes are not told."""
"""Reading aid, one line each."""
WORDS: Final[dict[model.Kind, str]] = {
    "failed": "SAVES FAILED",
    "cut off": "NEVER COMMITTED",
    "stalled": "STALLED",
    "leak": "LEAK",
    "slow host": "SLOW HOST",
    "waiting": "WAITING",
    "slower steps": "SLOWER STEPS",
    "too often": "SAVES TOO OFTEN",
}


def headline(found: model.Diagnosis) -> pages.Callout:
    """Returns the cause that matters most, in a sentence."""
    if found.findings:
        first = found.findings[0]
        return pages.Callout(WORDS[first.kind], first.text, "bad")
    of = "in what the log says, " if found.unsaid else "in what was read, " if found.unread else ""
    if found.calls is None:
        said = "no save has ended yet" if found.is_going else "no save has ended"
        if found.committed:
            count = pages.count(found.committed, "save")
            said = f"{count} committed, and nothing tells how long training was blocked"
        return pages.Callout("NOTHING TO SAY", of + said, "unsure")
    cost = f"saves block {pages.seconds(found.calls.median)} each"
    if found.seconds:
        whom = f"the thread {pages.code(found.thread)} for " if found.thread else ""
        cost = f"saves block {whom}{of_the_time(found, found.blocked_s)}"
    saves = f"{pages.count(found.committed, 'save')} committed, none failed"
    if found.unknown:
        saves = f"{pages.count(found.unknown, 'save')}, committed or not"
    return pages.Callout("NO TROUBLE", f"{of}{cost}; {saves}", "good")


def diagnosis_document(found: model.Diagnosis) -> pages.Document:
    """Returns a diagnosis for people."""
    others = [WORDS[each.kind] for each in found.findings[1:]]
    more = f"Also: {', '.join(others)}." if others else ""
    all_said = tuple(
        f"{WORDS[each.kind]}: {each.text}. What helps: {each.advice}" for each in found.findings
    )
    advice = (pages.Text(f"What helps: {found.findings[0].advice}."),) if found.findings else ()
    state = "still runs" if found.is_going else "has ended"
    took = pages.seconds(found.seconds) if found.seconds else "unknown time"
    return pages.Document(
        about=f"{'Recording' if found.source == 'recording' else 'Log'} {found.place}: "
        f"{pages.count(found.hosts, 'host')}, {pages.count(found.lives, 'life', 'lives')}, "
        f"{took}; the job {state}",
        headline=headline(found),
        summary=(
            *_picture(found),
            _table("of|in this job~", _facts(found)),
            pages.Text(more),
            *advice,
        ),
        following=_following(found),
        details=(
            pages.Details("All that is wrong", (pages.Text(items=all_said),)),
            pages.Details("Times", tuple(_times(found))),
            pages.Details("Hosts", (_hosts(found),)),
            pages.Details("Phases of a save, first host", (_phases(found),)),
            pages.Details("Memory", (_memory(found),)),
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
            pages.Details("Not looked at", (pages.Text(items=found.notes),)),
        ),
    )


def _following(found: model.Diagnosis) -> pages.Code | None:
    if found.suite:
        measure = command("run", found.suite, "-o", "results")
        return pages.Code(measure, "Measure the job's checkpoint with other options.")
    if found.source == "goodput":
        given = "--save-background", "2min", "--slowdown", "0.1"
        plan = command("goodput", "--from-log", found.place, *given)
        return pages.Code(plan, "How often to save; put in these two, which the log does not say.")
    if not found.checkpoint:
        return None
    write = command("diagnose", found.place, "--suite", "job.yaml")
    return pages.Code(write, "Write a suite that saves the job's checkpoint, to try options with.")


def _table(headings: str, rows: Iterable[tuple[str, ...]]) -> pages.Table:
    return pages.Table(pages.columns(*headings.split("|")), tuple(map(pages.Row, rows)))


def _known(value: float | None, write: Callable[[float], str] = pages.seconds) -> str:
    return "unknown" if value is None else write(value)


def _mib(value: float) -> str:
    return f"{pages.digits(value)} MiB"


def _facts(found: model.Diagnosis) -> Iterator[tuple[str, str]]:
    counts = [f"{found.committed} committed"]
    counts += [f"{found.failed} failed"] if found.failed else []
    counts += [f"{found.cut_off} never committed"] if found.cut_off else []
    if found.save_bytes is not None:
        counts.append(f"{pages.num_bytes(found.save_bytes)} each")
    if found.unknown:
        counts[0] = f"{found.unknown}; the log does not say whether they were committed"
    yield "saves", ", ".join(counts)
    if found.calls is not None:
        waited = ""
        if found.waits is not None:
            waited = f", {pages.seconds(found.waits.total)} of it waiting for the previous save"
        if found.explicit_s:
            waited += f", and {pages.seconds(found.explicit_s)} in waits of its own"
        each, total = pages.seconds(found.calls.median), pages.seconds(found.calls.total)
        yield f"{found.thread or 'training'} blocked", f"{each} each, {total} in all{waited}"
    if found.unsaid:
        yield "unknown", f"the log does not say {listed(found.unsaid)}"
    if found.unread:
        yield "missing", listed(found.unread)
    if found.background is not None:
        yield "in the background", f"{pages.seconds(found.background.median)} each"
    if found.failed_loads:
        done = 0 if found.loads is None else found.loads.count
        yield "loads", f"{done} done, {found.failed_loads} failed"
    if found.steps is not None:
        yield "steps", _steps(found.steps)
    if found.interval is not None:
        interval = found.interval
        useful = f"{pages.percent(interval.goodput_now, 2)} of the time is useful"
        best = f"{pages.seconds(interval.best)} would be best"
        would = pages.percent(interval.goodput_best, 2)
        yield "a save every", f"{pages.seconds(interval.now)}, {useful}; {best}, {would}"


def _steps(steps: model.StepFigures) -> str:
    said = f"{steps.count} of {pages.seconds(steps.median)}"
    if steps.ratio is None or steps.low is None or steps.high is None or steps.lost_s is None:
        return f"{said}; too few apart from saves to compare"
    change = pages.change(steps.ratio, steps.low, steps.high)
    return f"{said}, {change} next to a save, {pages.seconds(steps.lost_s)} lost by each"


def _times(found: model.Diagnosis) -> Iterator[pages.Element]:
    kinds = {
        f"{found.thread or 'training'} blocked by saves": found.calls,
        "of that waiting for the previous save": found.waits,
        "in the background": found.background,
        "loads": found.loads,
    }
    rows = (
        (name, str(times.count), *map(pages.seconds, (times.median, times.most, times.total)))
        for name, times in kinds.items()
        if times is not None
    )
    yield _table("of|count#|median#|longest#|in all#", rows)
    if found.explicit_s or not found.unsaid:
        own = pages.seconds(found.explicit_s)
        yield pages.Text(f"The job also waited for saves by calls of its own: {own} in all.")
    if (interval := found.interval) is not None:
        assumed = "assumed; --mtbf says it" if interval.mtbf_is_assumed else "as given or recorded"
        yield pages.Text(
            f"The best interval is that of a job with a failure every "
            f"{pages.wait(interval.mtbf / 60)} ({assumed}), which trains again after "
            f"{pages.seconds(interval.recovery)}."
        )


def _picture(found: model.Diagnosis) -> Iterator[pages.Chart]:
    if not found.points:
        return
    end = max(point.t for point in found.points)
    longest = max(point.waited + point.blocked for point in found.points)
    width = max(end, 1e-3) / 400
    waits: list[tuple[float, float]] = []
    calls: list[tuple[float, float]] = []
    for point in found.points:
        left, right = point.t - width, point.t + width
        waits += [(left, 0.0), (right, point.waited)]
        calls += [(left, point.waited), (right, point.waited + point.blocked)]
    bad = tuple((point.t, 0.0) for point in found.points if not point.committed)
    said = "; ".join(
        f"{name} at {pages.seconds(point.t)} blocks {pages.seconds(point.blocked)} and waits "
        f"{pages.seconds(point.waited)}"
        for name, point in (("the first", found.points[0]), ("the last", found.points[-1]))
    )
    yield pages.Chart(
        "Seconds that each save blocks training",
        said,
        pages.axis("seconds since the job began", 0, 1.02 * end, pages.digits),
        pages.axis("", 0, 1.05 * longest or 1.0, pages.seconds),
        (
            pages.Mark("bar", tuple(waits), "c2", "waiting for the previous save"),
            pages.Mark("bar", tuple(calls), "c1", "blocked"),
            pages.Mark("dots", bad, "bad", "no checkpoint"),
        ),
    )


def _hosts(found: model.Diagnosis) -> pages.Table:
    rows = (
        (
            *(str(host.host), host.node, str(host.saves)),
            *(_known(host.own), _known(host.blocked), _known(host.peak, _mib)),
        )
        for host in found.per_host
    )
    return _table("host#|machine`|saves#|own writes#|blocked#|memory added#", rows)


def _phases(found: model.Diagnosis) -> pages.Table:
    rows = ((phase.name, phase.thread, pages.seconds(phase.median)) for phase in found.phases)
    return _table("phase`|thread`|median#", rows)


def _memory(found: model.Diagnosis) -> pages.Table:
    rows = (
        (
            *(str(kept.host), kept.level, str(kept.saves)),
            *(_known(end, _mib) for end in (kept.per_save, kept.low, kept.high)),
            kept.word if kept.per_save is not None else "needs 200 saves",
        )
        for kept in found.kept
    )
    return _table("host#|memory|saves#|kept of each#|at least#|at most#|verdict", rows)
