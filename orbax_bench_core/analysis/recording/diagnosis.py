"""The diagnosis of a recording: its figures, then what they say is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from orbax_bench_core.analysis.recording import figures, model
from orbax_bench_core.analysis.recording.findings import findings_of
from orbax_bench_core.analysis.recording.reading import Recording

_MOST_POINTS: Final = 400


def diagnosis_of(
    recording: Recording,
    interval_of: Callable[[model.Diagnosis], model.Interval | None] = lambda _: None,
) -> model.Diagnosis:
    """Says what a job spends on checkpoints, and what is wrong.

    Args:
        recording: The job.
        interval_of: Returns how often it should save, by its figures: a plan of its goodput.
    """
    saves, whole = recording.saves, [one for one in recording.saves if one.is_whole]
    parts = [one.first for one in whole]
    every_load = [one for one in recording.operations if one.what == "load"]
    loads = [one.first for one in every_load if one.is_whole]
    begin = recording.lives[0].begin
    apart = (one.parts.values() for one in whole if not one.overlaps)
    sizes = [sum(part.num_bytes or 0 for part in on_hosts) for on_hosts in apart]
    stride = -(-len(saves) // _MOST_POINTS) or 1
    found = model.Diagnosis(
        place=recording.place,
        source=recording.kind,
        hosts=recording.hosts,
        lives=len(recording.lives),
        seconds=recording.seconds,
        is_going=recording.lives[-1].is_going,
        findings=(),
        committed=sum(one.fate == "committed" for one in saves),
        failed=sum(one.fate == "failed" for one in saves),
        cut_off=sum(one.fate == "cut off" for one in saves),
        unknown=sum(one.fate == "unknown" for one in saves),
        thread=saves[0].thread if saves and all(one.thread for one in saves) else "",
        calls=figures.times_of(part.call_s or 0.0 for part in parts),
        waits=figures.times_of(part.waited_s for part in parts if part.waited_s > 1e-3),
        background=figures.times_of(
            one.first.behind_s for one in whole if one.background and one.first.total_s is not None
        ),
        explicit_s=sum(seconds for life in recording.lives for _, seconds in life.waits),
        loads=figures.times_of(part.call_s or 0.0 for part in loads),
        failed_loads=sum(one.fate == "failed" for one in every_load),
        save_bytes=max(sizes, default=0) or None,
        steps=figures.steps_of(recording),
        kept=tuple(figures.kept_of(recording)),
        per_host=tuple(figures.hosts_of(recording)),
        phases=figures.longest_phases(recording),
        points=tuple(
            model.SavePoint(
                t=one.first.t - begin,
                blocked=one.first.blocked_s,
                waited=one.first.waited_s,
                committed=one.fate == "committed",
            )
            for one in saves[:: stride if recording.seconds else len(saves) + 1]
        ),
        checkpoint=next((one.path for one in whole[::-1] if one.fate == "committed"), ""),
        notes=recording.notes,
        unread=recording.unread,
    )
    unsaid = () if recording.kind == "recording" else tuple(_unsaid(found))
    found = found.model_copy(update={"unsaid": unsaid, "interval": interval_of(found)})
    return found.model_copy(update={"findings": findings_of(recording, found)})


def _unsaid(found: model.Diagnosis) -> Iterator[str]:
    """Yields what a log does not say."""
    known = {
        "how long it is": found.seconds,
        "how long saves block training": found.calls,
        "what goes on in the background": found.background,
        "steps of training": found.steps,
        "what each host writes itself": any(host.own is not None for host in found.per_host),
        "memory": found.kept,
        "waits for saves after their calls": found.explicit_s,
    }
    yield from (name for name, is_known in known.items() if not is_known)
