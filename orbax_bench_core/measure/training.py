"""Metrics of a training: what a save costs it, from the times of its steps, and what a kill."""

import functools
import statistics
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.measure.collectors import Reading
from orbax_bench_core.measure.definition import Metric

_cost = functools.partial(Metric, better="lower", collector="train_interference")
_tail = functools.partial(Metric, better="lower", collector="checkpoint_interval")
_job = functools.partial(Metric, better="lower", collector="training_job")

STEPS = Metric(
    name="7_overhead/train_steps",
    unit="count",
    better="none",
    description="Training steps that began in this phase, each timed until its outputs were ready",
    collector="train_interference",
)
STEP_MEDIAN = _cost(
    name="7_overhead/train_step_median_s",
    unit="s",
    description="Median time of these training steps",
)
STEP_MEAN = _cost(
    name="7_overhead/train_step_mean_s",
    unit="s",
    description="Mean time of these training steps, in which single long stalls show",
)
INFLATION = _cost(
    name="7_overhead/train_step_inflation",
    unit="ratio",
    description="train_step_mean_s of this phase / before the save; 1 is an undisturbed phase",
)
BLOCKED = _cost(
    name="7_overhead/train_blocked_s",
    unit="s",
    description="Time for which the save kept training from taking any step",
)
LOST = _cost(
    name="7_overhead/train_lost_s",
    unit="s",
    description=(
        "Training time that the save cost: train_blocked_s + duration * (1 - 1 / "
        "train_step_inflation), both of steps_during; its duration is train_steps * "
        "train_step_mean_s or, if longer, the time of save_background"
    ),
)
LOST_STEPS = _cost(
    name="7_overhead/train_lost_steps",
    unit="count",
    description="Steps that the save cost: train_lost_s / train_step_mean_s of steps_before",
)
STEP_P99 = _tail(
    name="7_overhead/train_step_p99_s",
    unit="s",
    description=(
        "99th percentile of the times of all steps of a training run, each with the save that it "
        "waited for"
    ),
)
STEP_MAX = _tail(name="7_overhead/train_step_max_s", unit="s", description="Longest of these steps")
SAVE_SHARE = _tail(
    name="7_overhead/train_save_share",
    unit="ratio",
    description="Share of the time of all steps that went beyond their median: what saves cost",
)


def interference_of_steps(times: Sequence[float], *, beside: Sequence[float] = ()) -> list[Reading]:
    """Describes the steps of one phase of training.

    Args:
        times: Seconds of each step, in order; may be empty.
        beside: Seconds of each step before the save, to compare with; empty to compare with none.

    Returns:
        Their number and, if there are any, their median, their mean and their inflation.
    """
    found = [Reading(STEPS.name, float(len(times)), STEPS.unit)]
    if times:
        found.append(Reading(STEP_MEDIAN.name, statistics.median(times), STEP_MEDIAN.unit))
        found.append(Reading(STEP_MEAN.name, statistics.fmean(times), STEP_MEAN.unit))
    if times and beside:
        # Not of medians: what a few long stalls cost is lost like any other time, and noise that
        # has nothing to do with the save raises both means alike.
        ratio = statistics.fmean(times) / statistics.fmean(beside)
        found.append(Reading(INFLATION.name, ratio, INFLATION.unit))
    return found


def tail_of_steps(times: Sequence[float]) -> list[Reading]:
    """Describes all steps of a training run that saves at an interval.

    The mean alone hides that few steps wait long: every save stops one of them.

    Args:
        times: Seconds of each step, with the call that saves after it; two or more.

    Returns:
        Their number, median, mean, 99th percentile, longest, and the share beyond the median.
    """
    median, total = statistics.median(times), sum(times)
    p99 = statistics.quantiles(times, n=100, method="inclusive")[-1]
    share = 1 - median * len(times) / total
    values = ((STEP_P99, p99), (STEP_MAX, max(times)), (SAVE_SHARE, share))
    return [
        *interference_of_steps(times),
        *(Reading(metric.name, value, metric.unit) for metric, value in values),
    ]


def interference_of_save(
    before: Sequence[float], during: Sequence[float], *, blocked_s: float, background_s: float
) -> list[Reading]:
    """Computes what one save cost training.

    In a duration D, steps of mean time t are D / t, and would have been D / t0 without the save.
    The steps that are missing would have taken (D / t0 - D / t) * t0 = D * (1 - t0 / t) seconds.

    Args:
        before: Seconds of each step before the save; not empty.
        during: Seconds of each step that began while the save ran. Empty when there were none: then
            only the blocked time counts as lost. When there were fewer than fit, because their
            number is bounded, the rest of the save is taken to disturb as much as they show.
        blocked_s: Seconds in which no step could begin.
        background_s: Seconds of the save's background part; 0 without one.

    Returns:
        Blocked time, lost time and lost steps. Noise can make the last two negative.
    """
    lost = blocked_s
    if during:
        duration = max(sum(during), background_s)
        lost += duration * (1 - statistics.fmean(before) / statistics.fmean(during))
    return [
        Reading(BLOCKED.name, blocked_s, BLOCKED.unit),
        Reading(LOST.name, lost, LOST.unit),
        Reading(LOST_STEPS.name, lost / statistics.fmean(before), LOST_STEPS.unit),
    ]


STEPS_LOST: Final = _job(
    name="7_overhead/steps_lost_count",
    unit="count",
    description="Training steps that were done before the kill, and are not in what was restored",
)
UNCOMMITTED: Final = _job(
    name="7_overhead/uncommitted_count",
    unit="count",
    description="Directories of saves that were never committed, found after the kill",
)
PEERS_NOTICE: Final = _job(
    name="7_overhead/peers_notice_s",
    unit="s",
    description=(
        "Time until another process that trained along ended by itself, left alone; absent where "
        "there was none, or none ended in the time that it was given"
    ),
)
METRICS: Final = (
    *(STEPS, STEP_MEDIAN, STEP_MEAN, INFLATION, BLOCKED, LOST, LOST_STEPS),
    *(STEP_P99, STEP_MAX, SAVE_SHARE),
    *(STEPS_LOST, UNCOMMITTED, PEERS_NOTICE),
)
