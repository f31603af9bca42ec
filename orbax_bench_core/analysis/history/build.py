"""Construction of a history: series of past runs, with their flags."""

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orbax_bench_core.analysis.history import model
from orbax_bench_core.analysis.history.changes import NEAR, SIGNIFICANCE, Flag, flags
from orbax_bench_core.analysis.history.words import question
from orbax_bench_core.analysis.verdicts import PointVerdict, judge_point, read_verdicts
from orbax_bench_core.baselines import FoundRun
from orbax_bench_core.config import ARMS, PER_ARM
from orbax_bench_core.errors import UserError
from orbax_bench_core.gate import NightCount, over_nights, stalls_of_night
from orbax_bench_core.provenance import UNKNOWN, surroundings
from orbax_bench_core.records import PairedTimes, Record, repeats_of, seconds_per_repeat
from orbax_bench_core.sweep import Pair, SweepPoint, side


class _Entry(NamedTuple):
    """One operation of one point in one run."""

    run: FoundRun
    measured: model.PastOperation


def measured_in(run: FoundRun) -> list[model.PastOperation]:
    """Summarizes all records of a run, operation by operation; this is the slow part."""
    verdicts = _verdicts(run)
    return [entry for records in run.read() for entry in _measured(run, records, verdicts)]


def _verdicts(run: FoundRun) -> Mapping[str, PointVerdict]:
    """Returns the verdicts that a run keeps, by the id of the point; none by other rules."""
    if run.directory is None:
        return {}
    try:
        found = read_verdicts(run.directory)
    except UserError:
        return {}
    if found.exploratory or found.run_id != run.run_id or found.gate != run.gate:
        return {}
    return {point.point_id: point for point in found.points}


def history(
    runs: Sequence[FoundRun],
    *,
    significance: float = SIGNIFICANCE,
    left_out: Sequence[str] = (),
    read: Callable[[FoundRun], Sequence[model.PastOperation]] = measured_in,
) -> model.History:
    """Returns the past of each point and operation, and when it changed.

    A paired run gives the ratio of its candidate to its reference. Runs belong to one series when
    their references are the same point, environment included, and their candidates are but for
    their environment, whose versions are what a history is about.
    """
    collected: dict[tuple[str, ...], list[_Entry]] = {}
    passed_over = []
    for run in runs:
        entries = [_Entry(run=run, measured=each) for each in read(run)]
        for entry in entries:
            collected.setdefault(entry.measured.series, []).append(entry)
        if not entries:
            passed_over.append(run.place)
    begun = [entries[0].run.began_at for key, entries in collected.items() if key[0] == "ratio"]
    series = [_series(entries, significance, begun) for entries in collected.values()]
    return model.History(
        significance=significance,
        series=tuple(sorted(series, key=lambda each: each.kind)),
        num_runs=len(runs),
        passed_over=tuple(passed_over),
        left_out=(*left_out, *(line for run in runs for line in run.left_out)),
    )


def _measured(
    run: FoundRun, records: Sequence[Record], verdicts: Mapping[str, PointVerdict]
) -> Iterator[model.PastOperation]:
    measured = [record for record in records if not record.warmup and record.status == "passed"]
    if not measured:
        return
    point = measured[0].point
    if isinstance(point, Pair):
        yield from _paired(run, point, records, measured, verdicts.get(point.id))
    else:
        yield from _separate(run, point, measured)


def _paired(
    run: FoundRun,
    pair: Pair,
    records: Sequence[Record],
    measured: Sequence[Record],
    verdict: PointVerdict | None,
) -> Iterator[model.PastOperation]:
    """Yields the ratios of the verdict, which is given again where the run keeps none of these."""
    repeats = list(repeats_of(records))
    series = PairedTimes.of(repeats)
    if run.info is None or not len(series.labels):
        return
    if verdict is None or verdict.blocks != len(series.labels):
        verdict = judge_point(pair, repeats, run.info)
    passed = {arm: [record for record in measured if record.arm == arm] for arm in ARMS}
    candidate = pair.candidate.replace(environment=None)
    failed = series.failed.reshape(*series.labels.shape, -1)
    failures = NightCount.of(failed, series.labels)
    seconds = {**series.times, **series.cpu}
    for found in verdict.operations:
        operation, judged = found.operation, found.verdict
        ratios = [value for value in found.block_log_ratios if math.isfinite(value)]
        if not ratios or not all(passed.values()):
            continue
        # CPU times that decide nothing would be more series to be wrong in.
        if operation in series.cpu and not found.primary:
            continue
        yield model.PastOperation(
            series=("ratio", pair.baseline.id, candidate.id, operation),
            point=pair,
            past=model.PastRun(
                **_identity(run, passed["candidate"]),
                value=judged.ratio or math.exp(_quartiles(ratios)[1]),
                low=judged.low,
                high=judged.high,
                n=(judged.lives or judged.operations) // PER_ARM if judged.ratio else len(ratios),
                by_blocks=not judged.ratio,
                reference=_what_ran(passed["baseline"][0]),
                failures=failures,
                stalls=stalls_of_night(seconds[operation], series.labels),
            ),
        )


def _separate(
    run: FoundRun, point: SweepPoint, records: Sequence[Record]
) -> Iterator[model.PastOperation]:
    plain = point.replace(environment=None)
    for operation, seconds in seconds_per_repeat(records).items():
        low, middle, high = _quartiles(seconds)
        yield model.PastOperation(
            series=("seconds", "", plain.id, operation),
            point=point,
            past=model.PastRun(
                **_identity(run, records), value=middle, low=low, high=high, n=len(seconds)
            ),
        )


def _series(
    entries: Sequence[_Entry], significance: float, begun: Sequence[datetime.datetime]
) -> model.PastSeries:
    last, runs = entries[-1], tuple(entry.measured.past for entry in entries)
    kind, _, _, operation = last.measured.series
    info = last.run.info
    series = model.PastSeries(
        point_id=last.measured.point.id,
        point=last.measured.point.name,
        operation=operation,
        kind=kind,
        baseline="" if info is None else info.baseline,
        candidate="" if info is None else info.candidate,
        primary=operation in last.run.gate.primary,
        runs=runs,
    )
    if kind == "seconds":
        return series
    found = {"changes": _changes(entries, significance, begun), "excesses": _excesses(runs)}
    return series.model_copy(update=found)


def _excesses(runs: Sequence[model.PastRun]) -> tuple[model.Excess, ...]:
    found = []
    counts = {"failures": [run.failures for run in runs], "stalls": [run.stalls for run in runs]}
    for kind, every in counts.items():
        placed = [(place, count) for place, count in enumerate(every) if count is not None]
        for first, last in over_nights([count for _, count in placed]):
            counted = [count for _, count in placed[first : last + 1]]
            found.append(
                model.Excess(
                    kind=kind,
                    first=placed[first][0],
                    last=placed[last][0],
                    candidate=sum(count.candidate for count in counted),
                    baseline=sum(count.baseline for count in counted),
                    operations=sum(count.operations for count in counted),
                )
            )
    return tuple(sorted(found, key=lambda each: each.last))


def _changes(
    entries: Sequence[_Entry], significance: float, begun: Sequence[datetime.datetime]
) -> tuple[model.Change, ...]:
    """Returns the flags of one series of ratios; `begun` is when each of all series began."""
    runs = [entry.measured.past for entry in entries]

    def level(cut: int, night: int) -> float:
        if _question(entries, cut):
            return significance
        # Those that began later were not looked at yet: what a flag needed then, it needs for good.
        return significance / sum(start <= runs[night].began_at for start in begun)

    values = [math.log(run.value) for run in runs]
    found = flags(values, level)
    ends = [0, *(flag.cut for flag in found), len(runs)]
    return tuple(
        _change(flag, entries, values[start : flag.cut], values[flag.cut : end])
        for flag, start, end in zip(found, ends, ends[2:], strict=False)
    )


def _change(
    flag: Flag, entries: Sequence[_Entry], before: Sequence[float], after: Sequence[float]
) -> model.Change:
    return model.Change(
        index=flag.cut,
        flagged=flag.night,
        statistic=flag.statistic,
        threshold=flag.threshold,
        before=math.exp(_quartiles(before)[1]),
        after=math.exp(_quartiles(after)[1]),
        differs=(
            *differences(
                *(side.measured.past.ran for side in reversed(_both_sides(entries, flag.cut)))
            ),
            *differences(
                {"code under test": entries[flag.cut].measured.past.code},
                {"code under test": entries[flag.cut - 1].measured.past.code},
            ),
        ),
        question=_question(entries, flag.cut),
    )


def _both_sides(entries: Sequence[_Entry], cut: int) -> tuple[_Entry, _Entry]:
    """Returns the nearest runs before and after a cut that ran something different.

    A cut is some nights off where noise is large, so they may be that far from it.
    """
    for away in range(NEAR + 1):
        before = entries[max(cut - 1 - away, 0)]
        after = entries[min(cut + away, len(entries) - 1)]
        if differences(after.measured.past.ran, before.measured.past.ran):
            return before, after
    return entries[cut - 1], entries[cut]


def _question(entries: Sequence[_Entry], cut: int) -> str:
    before, after = _both_sides(entries, cut)
    was, now = (side(each.measured.point, "candidate").environment for each in (before, after))
    suite = "" if after.run.info is None else after.run.info.suite_file
    return question(before.measured.past, after.measured.past, (was, now), suite)


def differences(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    """Returns which facts have changed, such as `jax: 0.10.1 → 0.10.2`; not those unknown."""
    return tuple(
        f"{name}: {before[name]} → {value}"
        for name, value in now.items()
        if name in before and value != before[name] and UNKNOWN not in (value, before[name])
    )


def _identity(run: FoundRun, records: Sequence[Record]) -> dict[str, Any]:
    record = records[0]
    return {
        "run_id": run.run_id,
        "place": run.place,
        "began_at": run.began_at,
        "ran": _what_ran(record),
        "code": _code(records),
        "machine": surroundings(record.provenance),
    }


def _code(records: Iterable[Record]) -> str:
    """Returns the revisions of the code under test, in words; all of a night that had several."""
    found = dict.fromkeys(record.code for record in records)
    words = (code.words if code.known or code.package else UNKNOWN for code in found)
    return " and ".join(dict.fromkeys(words))


def _what_ran(record: Record) -> dict[str, str]:
    """Returns versions, commit and environment of one record; `unknown` where it does not say."""
    point = record.measured
    provenance = record.provenance
    versions, git = provenance.get("versions", {}), provenance.get("git", {})
    return {
        **{name: str(version) for name, version in versions.items()},
        "commit": str(git.get("commit", UNKNOWN))[:12],
        "image": str(provenance.get("image", UNKNOWN)),
        "environment": UNKNOWN if point.environment is None else point.environment.name,
    }


def _quartiles(values: Iterable[float]) -> list[float]:
    import numpy as np

    return [float(quartile) for quartile in np.percentile(list(values), (25, 50, 75))]
