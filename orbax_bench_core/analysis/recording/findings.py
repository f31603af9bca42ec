"""What is wrong with a recorded job, the cause that matters most first."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.recording import figures, model
from orbax_bench_core.analysis.recording.reading import Operation, Recording
from orbax_bench_core.errors import shortened
from orbax_bench_core.recorder import stall_limit

_MATTERS: Final = 0.01
"""Share of the time below which a cost is not called wrong."""
_CHANCE: Final = 0.01
"""Chance that a job with equal hosts has one called slow."""
_SLOWER: Final = 1.25
"""How many times the others a slow host takes, in all."""
_WAITING: Final = 0.3
"""Share of the blocked time from which waiting for the save before is its cause."""
_LEAST_WAITED_S: Final = 2.0
"""Seconds in all below which waiting is that of a job too short to say."""
_FEWEST_USUAL: Final = 5
_NAMED: Final = 3
_INTERFERES: Final = 1.05
_LONG_S: Final = 600.0
"""Seconds of a job that saves at its own interval, and not to try something."""
_GAINS: Final = 0.02
"""Share of the time from which another interval is worth a line."""
_AT_ONCE_S: Final = 0.001


def findings_of(recording: Recording, found: model.Diagnosis) -> tuple[model.Finding, ...]:
    """Returns all that is wrong; `found` has the figures of the same recording."""
    rules = (
        _failed(recording),
        _cut_off(recording),
        _stalled(recording),
        _leaking(found),
        _slow_host(recording, found),
        _late_host(recording, found),
        _waiting(recording, found),
        _slower_steps(found),
        _too_often(found),
    )
    return tuple(itertools.chain.from_iterable(rules))


def of_the_time(found: model.Diagnosis, taken: float) -> str:
    """Returns seconds per minute of a job, such as `1.9 s of each 60 s`; of a short one, of all."""
    if found.seconds < 60:
        return f"{pages.seconds(taken)} of {pages.seconds(found.seconds)}"
    return f"{pages.seconds(60 * taken / found.seconds)} of each 60 s"


def _failed(recording: Recording) -> Iterator[model.Finding]:
    failed = [one for one in recording.saves if one.fate == "failed"]
    if not failed:
        return
    first = failed[0]
    told = "in the background, and the job was never told"
    if recording.kind != "recording":
        told = "in the background; the log does not say whether the job was told"
    if first.told_s is not None:
        after = f" {pages.seconds(first.told_s)} later" if first.told_s > _AT_ONCE_S else " at once"
        later = f"in the background, and the job was told{after}"
        told = later if first.background else "in the call"
    of = f"{len(failed)} of {pages.count(len(recording.saves), 'save')} failed"
    others = [one for one in recording.saves if one.first.t > first.first.t]
    after = "; the job went on" if others else ""
    after += " and saved again" if any(one.is_whole for one in others) else ""
    yield model.Finding(
        kind="failed",
        text=f"{of}, {_steps(failed)}: {shortened(first.error) or 'nothing says why'}; it failed "
        f"{told}{after}",
        advice="these steps have no checkpoint: correct the cause, and let the loop see exceptions "
        "of `save` and `wait_until_finished`",
    )


def _cut_off(recording: Recording) -> Iterator[model.Finding]:
    cut = [one for one in recording.saves if one.fate == "cut off"]
    if not cut:
        return
    last = cut[-1]
    before = [one for one in recording.saves if one.is_whole and one.life <= last.life]
    kept = f"; the last checkpoint before is {_steps(before[-1:])}" if before else ""
    ended = recording.lives[last.life].is_closed
    how = "the process ended" if ended else "the process was gone, as after a kill,"
    how = how if recording.kind == "recording" else "the log ends"
    yield model.Finding(
        kind="cut off",
        text=f"{pages.count(len(cut), 'save')} never committed, {_steps(cut)}: {how} while "
        f"{'they' if len(cut) > 1 else 'it'} went on{kept}",
        advice="wait for the last save before the job ends (`wait_until_finished`); after a kill, "
        "a job goes on from the checkpoint before",
    )


def _stalled(recording: Recording) -> Iterator[model.Finding]:
    whole = [one for one in recording.saves if one.is_whole]
    if len(whole) < _FEWEST_USUAL:
        return
    found = []
    for part, name in ((_call, "blocked training for"), (_behind, "went on in the background for")):
        values = [part(one) for one in whole]
        limit = stall_limit(values)
        stalls = [one for one in whole if part(one) > limit]
        if not stalls:
            continue
        longest = max(stalls, key=part)
        usual = pages.seconds(statistics.median(values))
        phase = _phase_of(longest, [one for one in whole if one not in stalls])
        stalled = model.Finding(
            kind="stalled",
            text=f"{pages.count(len(stalls), 'save')} of {len(whole)} stalled: that of "
            f"{_steps([longest])} {name} {pages.seconds(part(longest))}, usually it is "
            f"{usual}{phase}",
            advice="look at the storage and the host at that time; `orbax-bench limits DIR` "
            "measures what the storage can do",
        )
        found.append((part(longest) - statistics.median(values), stalled))
    yield from (each for _, each in sorted(found, key=lambda pair: -pair[0]))


def _leaking(found: model.Diagnosis) -> Iterator[model.Finding]:
    leaks = [kept for kept in found.kept if kept.word == "LEAK" and kept.per_save is not None]
    if not leaks:
        return
    most = max(leaks, key=lambda kept: kept.per_save or 0.0)
    assert most.per_save is not None and most.low is not None and most.high is not None
    on = f"host {most.host}" if found.hosts > 1 else "the process"
    hosts = f", as {pages.count(len(leaks) - 1, 'other')} do" if len(leaks) > 1 else ""
    what = "device memory" if most.level == "device" else "memory"
    yield model.Finding(
        kind="leak",
        text=f"{on} keeps {pages.digits(most.per_save)} MiB of {what} of each save "
        f"({pages.digits(most.low)} to {pages.digits(most.high)} MiB, {most.saves} saves){hosts}",
        advice="`orbax-bench soak` tells whether Orbax alone keeps it, with a suite that "
        "reproduces the checkpoint",
    )


def _slow_host(recording: Recording, found: model.Diagnosis) -> Iterator[model.Finding]:
    whole = [one for one in recording.saves if one.is_whole]
    rows = [
        own
        for one in whole
        if len(own := {h: p.own_s for h, p in one.parts.items() if p.own_s is not None}) > 1
    ]
    host, times, is_chance = _outstanding(map(_slowest, rows), rows)
    if host is None or is_chance:
        return
    pairs = [
        (own[host][0], statistics.median(most for each, (_, most) in own.items() if each != host))
        for own in rows
        if host in own
    ]
    whole_s, others_s = map(sum, zip(*pairs, strict=True))
    if whole_s < _SLOWER * others_s or whole_s - others_s < _MATTERS * found.seconds:
        return
    mine, others = (pages.seconds(statistics.median(side)) for side in zip(*pairs, strict=True))
    yield model.Finding(
        kind="slow host",
        text=f"{_named(recording, host)} is slowest in {times} of {len(rows)} saves: it writes "
        f"for {mine}, the others for {others}{_excess_phase(whole, host)}",
        advice="each save ends with its slowest host: compare its disk, network and neighbours "
        "with those of another one",
    )


def _late_host(recording: Recording, found: model.Diagnosis) -> Iterator[model.Finding]:
    """Names a host that begins its saves later than the others, who wait for it in theirs.

    Clocks of hosts differ, and a call may be longer for other reasons: only what both the begins
    and the lengths of the calls tell is a wait.
    """
    rows = [
        one.parts
        for one in recording.saves
        if one.is_whole
        and len(one.parts) > 1
        and all(part.call_s is not None for part in one.parts.values())
    ]
    last = (max(row.values(), key=lambda part: part.t).host for row in rows)
    host, times, is_chance = _outstanding(last, rows)
    if host is None or is_chance:
        return
    own_s, waits = 0.0, []
    for row in (row for row in rows if host in row):
        mine, others = row[host], [part for each, part in row.items() if each != host]
        own_s += mine.blocked_s
        waits.append(
            statistics.median(
                max(0.0, min(mine.t - each.t, each.blocked_s - mine.blocked_s)) for each in others
            )
        )
    if sum(waits) < max((_SLOWER - 1) * own_s, _MATTERS * found.seconds):
        return
    yield model.Finding(
        kind="slow host",
        text=f"{_named(recording, host)} comes last to {times} of {len(rows)} saves, for which the "
        f"others wait {pages.seconds(statistics.median(waits))} each",
        advice="all hosts save together: look at what this one does between its last step and "
        "the save, and at its input and neighbours",
    )


def _outstanding(
    hosts: Iterable[int | None], rows: Sequence[Sized]
) -> tuple[int | None, int, bool]:
    """Returns the most frequent host, how often it comes, and whether equal hosts do that, too.

    The chance is that of a binomial tail, times the number of hosts (Bonferroni).
    """
    counted = Counter(host for host in hosts if host is not None)
    if not counted:
        return None, 0, True
    [(host, times)] = counted.most_common(1)
    number, saves = max(map(len, rows)), len(rows)
    chance = number * sum(
        math.comb(saves, k) * (1 / number) ** k * (1 - 1 / number) ** (saves - k)
        for k in range(times, saves + 1)
    )
    return host, times, chance >= _CHANCE


def _named(recording: Recording, host: int) -> str:
    node = recording.lives[-1].hosts[host].node if host in recording.lives[-1].hosts else "gone"
    return f"host {host} ({node})" if node else f"host {host}"


def _slowest(own: dict[int, tuple[float, float]]) -> int | None:
    """Returns the host that wrote longest by itself, if its least is more than all others' most."""
    host = max(own, key=lambda each: own[each][0])
    others = (most for each, (_, most) in own.items() if each != host)
    return host if own[host][0] > max(others) else None


def _waiting(recording: Recording, found: model.Diagnosis) -> Iterator[model.Finding]:
    if found.calls is None or found.waits is None or not found.seconds:
        return
    waited = found.waits.total
    least = max(_MATTERS * found.seconds, _WAITING * found.calls.total, _LEAST_WAITED_S)
    if waited < least:
        return
    going = [one.first for one in recording.saves if one.is_whole]
    ends = sorted((part.total_s or 0.0) - part.waited_s for part in going)
    enough = ends[int(0.9 * (len(ends) - 1))]
    yield model.Finding(
        kind="waiting",
        text=f"saves block {of_the_time(found, found.calls.total)}; "
        f"{pages.percent(waited / found.calls.total)} of it is waiting for the previous save",
        advice=f"save no more often than every {pages.seconds(enough)}, or make the background "
        "part faster",
    )


def _slower_steps(found: model.Diagnosis) -> Iterator[model.Finding]:
    steps = found.steps
    if steps is None or steps.ratio is None or steps.low is None or steps.lost_s is None:
        return
    lost = steps.lost_s * found.committed / (found.seconds or 1.0)
    if steps.low < _INTERFERES or lost < _MATTERS:
        return
    yield model.Finding(
        kind="slower steps",
        text=f"steps next to a background save take "
        f"{pages.change(steps.ratio, steps.low, steps.high)} longer, {pages.percent(lost)} of the "
        "time",
        advice="fewer files and threads at once (`save_concurrent_gb`) leave more to training",
    )


def _too_often(found: model.Diagnosis) -> Iterator[model.Finding]:
    interval = found.interval
    if interval is None or interval.best <= interval.now or found.seconds < _LONG_S:
        return
    if interval.goodput_best - interval.goodput_now < _GAINS:
        return
    fails = "an assumed failure" if interval.mtbf_is_assumed else "a failure"
    best = pages.seconds(interval.best)
    costs, would = (
        pages.percent(1 - share, 1) for share in (interval.goodput_now, interval.goodput_best)
    )
    yield model.Finding(
        kind="too often",
        text=f"saves every {pages.seconds(interval.now)} and failures cost {costs} of the time; "
        f"with a save every {best} they would cost {would}, with {fails} every "
        f"{pages.wait(interval.mtbf / 60)}",
        advice=f"save every {best}; `orbax-bench diagnose --mtbf` takes how often the job fails",
    )


def _steps(operations: Sequence[Operation]) -> str:
    """Returns the steps of some saves: `step 40`, or `steps 40, 50, ...`; else their paths."""
    steps = [str(one.step) for one in operations if one.step is not None]
    are_steps = len(steps) == len(operations)
    named = steps if are_steps else [one.path for one in operations]
    more = ", ..." if len(named) > _NAMED else ""
    which = f"step{'s' if len(named) > 1 else ''} " if are_steps else ""
    return f"{which}{', '.join(named[:_NAMED])}{more}"


def _call(operation: Operation) -> float:
    return operation.first.call_s or 0.0


def _behind(operation: Operation) -> float:
    return operation.first.behind_s


def _phase_of(operation: Operation, others: Sequence[Operation]) -> str:
    """Returns the phase of a save that is longest beyond the usual, as the end of a sentence."""
    waited = operation.first.waited_s
    if waited > _call(operation) / 2:
        return f"; {pages.seconds(waited)} of it is waiting for the previous save"
    return _longest(figures.phases_of([operation]), figures.phases_of(others))


def _excess_phase(operations: Sequence[Operation], host: int) -> str:
    both = [one for one in operations if host in one.parts and len(one.parts) > 1]
    other = min(each for each in both[0].parts if each != host)
    theirs = figures.phases_of([one for one in both if other in one.parts], other)
    mine = figures.phases_of(both, host)
    return _longest({event: phase for event, phase in mine.items() if event in theirs}, theirs)


def _longest(mine: dict[str, model.Phase], usual: dict[str, model.Phase]) -> str:
    """Names the innermost phase that has most of what is beyond the usual."""
    excess = {
        event: phase.median - (usual[event].median if event in usual else 0.0)
        for event, phase in mine.items()
    }
    most = max(excess.values(), default=0.0)
    if most <= 0:
        return ""
    near = (event for event, value in excess.items() if value > 0.9 * most)
    event = min(near, key=lambda each: mine[each].median)
    return f"; {pages.seconds(excess[event])} more in {pages.code(mine[event].name)}"
