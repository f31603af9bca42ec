"""Diagnosis of a recorded job: what was recorded, the interval that fits, a suite like it."""

from __future__ import annotations

import itertools
import statistics
from typing import Final

from orbax_bench_core.analysis import recording
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import place
from orbax_bench_core.plan.goodput import job_of, plan_goodput
from orbax_bench_core.suite_files import Devices, Subject, draft_suite

ASSUMED_MTBF_S: Final = 24 * 3600.0
"""Seconds between two failures of a job of which none was recorded."""
_MOST_TRIED: Final = 100
"""Checkpoints of a job that are looked for."""


def diagnose(found: recording.Recording, *, mtbf_s: float | None = None) -> recording.Diagnosis:
    """Says what is wrong with a job, and how often it should save.

    Args:
        found: The job, as it was recorded.
        mtbf_s: Seconds between two failures of the job; by default as they were recorded.
    """
    said = recording.diagnosis_of(found, lambda diagnosis: _interval(found, diagnosis, mtbf_s))
    # A bucket is asked only for the suite itself.
    is_left = "://" in said.checkpoint or _last_left(found) is not None
    return said if is_left else said.model_copy(update={"checkpoint": ""})


def suite_like(job: recording.Recording, file: str = "job.yaml") -> LoadedSuite:
    """Drafts a suite that saves the tree of the job's last checkpoint, with made-up values.

    Jobs remove old checkpoints, and with `best_fn` new ones, so it is the last that is left.

    Raises:
        UserError: No checkpoint is left to be read.
    """
    saved = _committed(job)
    if not saved:
        raise UserError(f"no save of {job.place} was committed: nothing tells what it saves")
    like = _last_left(job)
    if like is None:
        raise UserError(
            f"{job.place}: none of the job's last checkpoints is left, such as {saved[0]!r}: a "
            "suite, and a run, have its arrays from its metadata; copy one back to its place"
        )
    devices = Devices(count=1, simulated=True)
    subject = Subject(like=like)
    return draft_suite(subject, "options", file=file, devices=devices, with_schema=False)


def _committed(job: recording.Recording) -> list[str]:
    """Returns the paths of the checkpoints of a job, the last one first."""
    return [one.path for one in job.saves[::-1] if one.is_whole and one.fate == "committed"]


def _last_left(job: recording.Recording) -> str | None:
    """Returns the last of them that is left; None if none of the last hundred is."""
    return next((path for path in _committed(job)[:_MOST_TRIED] if place(path).exists()), None)


def _interval(
    found: recording.Recording, diagnosis: recording.Diagnosis, mtbf_s: float | None
) -> recording.Interval | None:
    """Returns how often to save; None of a job with fewer than two saves, or without steps.

    Saves that block another thread do not say what they cost training, and a log of
    ml-goodput-measurement does not say what goes on in the background.
    """
    if (
        found.kind == "goodput"
        or diagnosis.calls is None
        or diagnosis.steps is None
        or diagnosis.thread
        or not diagnosis.seconds
    ):
        return None
    saves = sorted((one for one in found.saves if one.is_whole), key=lambda one: one.life)
    gaps = [
        after.first.t - before.first.t
        for before, after in itertools.pairwise(saves)
        if before.life == after.life
    ]
    if not gaps:
        return None
    # Lives that run at the same time are of several jobs, and none follows a failure.
    pairs = itertools.pairwise(found.lives)
    failures = [(before, after) for before, after in pairs if before.end <= after.begin]
    recorded_mtbf_s = found.seconds / len(failures) if failures else None
    # From the end of a life to the first step of the next one; without any, what the job took to
    # get to its first step.
    back = [_first_step(after) - before.end for before, after in failures]
    back = back or [_first_step(found.lives[-1]) - found.lives[-1].begin]
    own_s = diagnosis.explicit_s / len(saves)  # waits by calls of the job's own
    steps, behind = diagnosis.steps, diagnosis.background
    given: dict[str, float | None] = {
        "mtbf_s": (recorded_mtbf_s or ASSUMED_MTBF_S) if mtbf_s is None else mtbf_s,
        "blocking_s": statistics.median(one.first.blocked_s for one in saves) + own_s,
        "background_s": 0.0 if behind is None else behind.median,
        "slowdown": 0.0 if steps.ratio is None else min(0.99, max(0.0, 1 - 1 / steps.ratio)),
        "recovery_s": max(0.0, statistics.median(back)),
        "step_s": steps.median or None,  # also of a job whose steps take no time
    }
    job = job_of(given)
    now = statistics.median(gaps)
    # What saves wait for each other today is in their calls, and no time of work.
    blocking = diagnosis.calls.median + own_s
    work = max(1e-3, now - blocking)
    given |= {"blocking_s": blocking, "background_s": min(job.background_s, work)}
    way = "async" if job.background_s else "sync"
    best = next(each for each in plan_goodput(job).strategies if each.name == way)
    today = [
        each for each in plan_goodput(job_of(given), interval_s=work).strategies if not each.is_best
    ][-1]
    return recording.Interval(
        now=now,
        best=best.interval_s,
        goodput_now=today.goodput,
        goodput_best=best.goodput,
        mtbf=job.mtbf_s,
        mtbf_is_assumed=mtbf_s is None and not failures,
        recovery=job.recovery_s,
    )


def _first_step(life: recording.Life) -> float:
    """Returns the time of the first step of a life, or of its begin if no step is known."""
    return life.steps[0][1] if life.steps else life.begin
