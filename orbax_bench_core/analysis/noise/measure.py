"""Noise in records: of the repeats of a worker, and from one worker process to the next."""

import dataclasses
import datetime
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.analysis.noise import passport
from orbax_bench_core.gate import NORMAL_MAD
from orbax_bench_core.provenance import surroundings
from orbax_bench_core.records import PairedTimes, Record, repeats_of, seconds_per_repeat
from orbax_bench_core.sweep import Pair, baseline_point, placement

_LEVEL: Final = 0.95
_FAR: Final = 3.0
"""Robust standard deviations at which residuals are cut off: a stall belongs to no worker."""


def between_workers(values: Any) -> passport.Component | None:
    """Returns how much workers differ beyond what their operations do.

    An analysis of variance of y = wave + worker + round within the wave + rest: the estimate is
    sqrt((MS of workers - MS of the rest) / rounds), its interval that of J. S. Williams ("A
    confidence interval for variance components", Biometrika 49 (1962) 278), which has at least the
    coverage it states. What workers of a wave share, such as the drift of the machine, is no part
    of it. Residuals are cut off at three robust standard deviations first.

    With log times the result is the process noise tau; with log ratios of two options in one
    worker, the interaction of worker and option. `values` are finite, of shape (waves, workers of a
    wave, rounds of a worker); workers of a wave lived at about the same time, under one option.
    """
    from scipy.special import fdtrc

    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 3 or min(table.shape) < 1 or table.shape[1] < 2 or table.shape[2] < 2:
        return None
    waves, workers, rounds = table.shape
    middle = np.median(table, axis=(1, 2), keepdims=True)
    rest = table - middle
    if limit := _FAR * float(np.median(np.abs(rest))) / NORMAL_MAD:
        table = middle + np.clip(rest, -limit, limit)
    wave = table.mean(axis=(1, 2), keepdims=True)
    worker, turn = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
    between, within = waves * (workers - 1), waves * (workers - 1) * (rounds - 1)
    ms_between = rounds * float(((worker - wave) ** 2).sum()) / between
    ms_within = float(((table - worker - turn + wave) ** 2).sum()) / within
    low, high = _williams(ms_between, ms_within, (between, within), rounds)
    return passport.Component(
        estimate=math.sqrt(max(ms_between - ms_within, 0.0) / rounds),
        low=low,
        high=high,
        p_value=float(fdtrc(between, within, ms_between / ms_within))
        if ms_within
        else float(not ms_between),
        workers=waves * workers,
        rounds=rounds,
    )


def expected_bound(sigma: float, waves: int, workers: int, rounds: int) -> float:
    """Returns the upper 95 % bound to expect for workers that do not differ at all."""
    freedom = waves * (workers - 1), waves * (workers - 1) * (rounds - 1)
    return _williams(sigma**2, sigma**2, freedom, rounds)[1]


def _williams(
    between: float, within: float, freedom: tuple[int, int], rounds: int
) -> tuple[float, float]:
    """Returns both ends for the standard deviation between workers."""
    from scipy.special import chdtri, fdtri

    tail = (1 - _LEVEL) / 2
    first, second = freedom

    def end(lower_tail: float, found: float = between) -> float:
        f_value = float(fdtri(first, second, lower_tail))
        chi_square = float(chdtri(first, 1 - lower_tail))
        square = first * (found - f_value * within) / (rounds * chi_square)
        return math.sqrt(max(square, 0.0))

    # Workers that differ less than chance would have it are no proof that they never differ.
    return end(1 - tail), end(tail, max(between, within))


_FEWEST: Final = 4


@dataclasses.dataclass(slots=True)
class _Found:
    """Noise of the series of one entry."""

    sigmas: list[float] = dataclasses.field(default_factory=list)
    repeat_s: list[float] = dataclasses.field(default_factory=list)
    points: set[str] = dataclasses.field(default_factory=set)
    lives: list[Any] = dataclasses.field(default_factory=list)
    ratios: dict[str, list[Sequence[float]]] = dataclasses.field(default_factory=dict)
    n: int = 0


def from_records(records: Iterable[Record]) -> passport.Passport:
    """Returns how noisy operations were, by operation, size class, storage and machine.

    Noise is what operations that follow each other differ by: within a block those of the same arm,
    so that neither a difference between arms nor a drift counts. Series of fewer than four
    operations are left out. The runs may be any number, paired or not.

    Process noise comes from runs in which every slot of a block was a worker of its own, the
    interaction of worker and option from pairs that were run several times by one worker for both
    arms, each run being a worker.
    """
    series: dict[tuple[str, str], list[Record]] = {}
    starts: dict[str, list[datetime.datetime]] = {}
    for record in records:
        if record.host == 0:
            starts.setdefault(record.run_id, []).append(record.started_at)
        if not record.warmup and record.status == "passed":
            series.setdefault((record.run_id, record.point_id), []).append(record)
    found: dict[tuple[str, str, str, int, str], _Found] = {}
    for (run_id, _), measured in series.items():
        first = measured[0]
        around = surroundings(first.provenance)
        num_bytes = baseline_point(first.point).checkpoint.num_bytes or 0
        if first.state is not None:
            num_bytes = first.state.num_bytes
        place = around["storage"], around["CPU"], around["device"], passport.size_class(num_bytes)
        repeat_s = _repeat_s(starts[run_id], measured)
        for operation, (sigma, n) in _sigmas(measured).items():
            entry = found.setdefault((*place, operation), _Found())
            entry.sigmas.append(sigma)
            entry.repeat_s.append(repeat_s)
            entry.points |= passport.point_ids(first.point)
            entry.n += n
            _add_workers(entry, operation, measured)
    noise = [
        passport.Noise(
            operation=operation,
            storage=storage,
            cpu=cpu,
            device=device,
            size=size,
            sigma=statistics.median(entry.sigmas),
            n=entry.n,
            series=len(entry.sigmas),
            repeat_s=statistics.median(entry.repeat_s),
            points=tuple(sorted(entry.points)),
            tau=_largest(entry.lives),
            interaction=_largest([_same_length(runs) for runs in entry.ratios.values()]),
        )
        for (storage, cpu, device, size, operation), entry in sorted(
            found.items(), key=lambda item: item[0]
        )
    ]
    return passport.Passport(made_at=datetime.datetime.now(datetime.UTC), noise=tuple(noise))


def _add_workers(entry: _Found, operation: str, records: Sequence[Record]) -> None:
    """Adds what one series says of its workers: times by life, or log ratios in one worker."""
    pair = records[0].point
    if not isinstance(pair, Pair):
        return
    paired = PairedTimes.of(repeats_of(records))
    if paired.lives:
        times = paired.times[operation]
        entry.lives.append(waves_of_lives(times, paired.labels, same=pair.identical))
    elif not pair.identical and placement(pair.baseline) == placement(pair.candidate):
        entry.ratios.setdefault(pair.id, []).append(paired.log_ratios(operation))


def waves_of_lives(times: Any, labels: Any, *, same: bool) -> Any:
    """Returns log times as waves of workers that lived together, (waves, workers, rounds).

    Every slot of a block in `times`, (blocks, 4, m), is the life of a worker; `labels`, (blocks,
    4), say where the candidate ran. If both arms are the `same`, the four lives of a block are one
    wave, otherwise the two of each arm. Waves with a time that is no positive number are left out.
    """
    table = np.asarray(times, dtype=np.float64)
    if not same:
        order = np.argsort(np.asarray(labels), axis=1, kind="stable")
        table = np.take_along_axis(table, order[..., None], axis=1)
        table = table.reshape(-1, table.shape[1] // 2, table.shape[2])
    whole = (np.isfinite(table) & (table > 0)).all(axis=(1, 2))
    return np.log(table[whole])


def _same_length(runs: Sequence[Sequence[float]]) -> Any:
    """Returns the log ratios of several runs as one wave of workers, as long as the shortest."""
    length = min(map(len, runs))
    table = np.asarray([run[:length] for run in runs], dtype=np.float64).reshape(1, len(runs), -1)
    return table if np.isfinite(table).all() else table[:0]


def _largest(tables: Iterable[Any]) -> passport.Component | None:
    """Returns the component of the waves that are alike in shape and have most workers."""
    alike: dict[tuple[int, ...], list[Any]] = {}
    for table in tables:
        alike.setdefault(table.shape[1:], []).append(table)
    found = [between_workers(np.concatenate(same)) for same in alike.values()]
    known = [component for component in found if component is not None]
    return max(known, key=lambda component: component.workers, default=None)


def _sigmas(records: Sequence[Record]) -> dict[str, tuple[float, int]]:
    """Returns sigma and the number of operations of one series, by operation."""
    pairs: dict[str, Sequence[Sequence[float]]]
    if records[0].block is None:
        times = seconds_per_repeat(records)
        pairs = {name: list(itertools.pairwise(values)) for name, values in times.items()}
    else:
        paired = PairedTimes.of(repeats_of(records))
        pairs = {name: _neighbours(paired, name) for name in paired.times}
        times = {
            name: tuple(value for values in paired.of_arms(name).values() for value in values)
            for name in paired.times
        }
    return {
        name: (
            # The standard deviation that the middle of the differences of pairs implies.
            statistics.median(abs(math.log(now / before)) for before, now in pairs[name])
            / math.sqrt(2)
            / NORMAL_MAD,
            len(values),
        )
        for name, values in times.items()
        if len(values) >= _FEWEST and min(values) > 0 and pairs[name]
    }


def _neighbours(paired: PairedTimes, operation: str) -> list[tuple[float, float]]:
    """Returns pairs of seconds that differ by the noise of one process alone.

    Those are operations of one life that follow each other; without lives the two operations of an
    arm in a block.
    """
    found = []
    for row, labels in zip(paired.times[operation], paired.labels, strict=True):
        series = row if paired.lives else [row[labels == arm] for arm in (False, True)]
        found += [(float(a), float(b)) for one in series for a, b in itertools.pairwise(one)]
    return [pair for pair in found if all(map(math.isfinite, pair))]


def _repeat_s(starts: Sequence[datetime.datetime], records: Sequence[Record]) -> float:
    """Returns the seconds that one repeat takes, what lies between repeats included."""
    ordered = sorted(starts)
    until = {start: after - start for start, after in itertools.pairwise(ordered)}
    known = [
        until[record.started_at].total_seconds()
        for record in records
        if record.host == 0 and record.started_at in until
    ]
    return statistics.median(known or [record.duration_s for record in records])
