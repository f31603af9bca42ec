"""Comparison of points that differ in nothing but how they save, size by size."""

import collections
import itertools
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.async_study import model
from orbax_bench_core.analysis.async_study.lines import FEWEST_SIZES, fit_of
from orbax_bench_core.analysis.async_study.reasons import SENTENCES
from orbax_bench_core.analysis.intervals import median_interval, ratio_interval
from orbax_bench_core.analysis.names import setting_text
from orbax_bench_core.analysis.summary import PointStatus, summarize
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError
from orbax_bench_core.reasons import Reason, because, in_words
from orbax_bench_core.records import OperationTimes, Repeat, Run
from orbax_bench_core.sweep import SweepPoint, short_name

OPTION: Final = "async_enabled"
"""The option of a benchmark that says how it saves."""
_NAMES: Final = ("enable_async_save", OPTION)
"""The names that it has; where a benchmark has both, the first that is given decides."""

BLOCKED: Final = "save_blocking"
TOTAL: Final = "save"

NEEDED: Final = (
    f"a study needs points of one benchmark that saves, with `{OPTION}: [false, true]` and repeats "
    "that passed; examples/async_study.yaml is such a suite"
)

_FEW: Final = 3

_Points = dict[bool, list[list[Repeat]]]
"""The repeats of the series that save one checkpoint, by whether they do so in the background."""


def seconds_of(times: Sequence[float]) -> model.Seconds:
    """Returns the median of some repeats with its interval."""
    found = median_interval(times)
    return model.Seconds(n=len(times), median=statistics.median(times), **found._asdict())


def ratio_of(above: Sequence[float], below: Sequence[float]) -> model.Ratio:
    """Returns the ratio of one kind of repeats to another, with its interval."""
    value, low, high = ratio_interval(above, below)
    return model.Ratio(value=value, low=low, high=high)


def async_study(run: Run, num_parameters: Callable[[SweepPoint], int | None]) -> model.AsyncStudy:
    """Compares saves in the background with blocking saves of the same checkpoints.

    `num_parameters` returns the parameters of a point's model; None if nothing tells.

    Raises:
        UserError: No checkpoint was saved in both ways; the message says why.
    """
    notes: list[Reason] = []
    info = run.info
    found = {
        id_: list(repeats)
        for id_, repeats in itertools.groupby(
            run.repeats(warmups=True), key=lambda repeat: repeat.series.id
        )
    }
    for each in run.series():
        if _way(each.point) is not None and each.id not in found:
            notes += because("no_record", point=each.name)
    pairs: dict[str, dict[str, _Points]] = collections.defaultdict(dict)
    for repeats in found.values():
        point = repeats[0].series.point
        way = _way(point)
        if way is not None:
            checkpoints = pairs[_series_key(point)]
            kinds = checkpoints.setdefault(_checkpoint_key(point), {False: [], True: []})
            kinds[way].append(repeats)
    series = []
    names = _names([next(iter(group.values())) for group in pairs.values()])
    for name, group in zip(names, pairs.values(), strict=True):
        sizes = [
            size
            for kinds in group.values()
            if (size := _size(kinds, num_parameters, notes)) is not None
        ]
        if sizes:
            series.append(_series(name, sizes, notes))
    if not series:
        told = [in_words(SENTENCES, note) for note in notes]
        reasons = told or [f"no point has the option `{OPTION}`"]
        raise UserError(
            f"run {info.run_id} ({info.suite_name}) has no checkpoint that was saved in both ways: "
            f"{'; '.join(reasons[:_FEW])}{' ...' if len(reasons) > _FEW else ''}. {NEEDED}"
        )
    if info.execution.order == "sequential" and info.expansion.plain:
        notes[:0] = because("sequential")
    return model.AsyncStudy(
        run_id=info.run_id, suite=info.suite_name, series=tuple(series), notes=tuple(notes)
    )


def check_points(points: Iterable[SweepPoint], loaded: LoadedSuite) -> None:
    """Refuses points that make no study, before they are measured.

    Raises:
        UserError: The order is `sequential`, or no checkpoint is saved in both ways.
    """
    if loaded.suite.execution.order == "sequential":
        raise UserError(
            loaded.source.problem(
                "a study compares both kinds of save, so they have to take turns: with "
                "`sequential` a machine that drifts makes one of them slower; leave it out, or "
                "write `interleaved`",
                ("execution", "order"),
            )
        )
    kinds: dict[tuple[str, str], set[bool]] = collections.defaultdict(set)
    for point in points:
        if (kind := _way(point)) is not None:
            kinds[_series_key(point), _checkpoint_key(point)].add(kind)
    if not any(len(ways) == 2 for ways in kinds.values()):
        raise UserError(f"this suite saves no checkpoint in both ways: {NEEDED}")


def _way(point: SweepPoint) -> bool | None:
    """Returns whether a point saves in the background; None if no option of it says so."""
    given = (point.options.get(name) for name in _NAMES)
    return next((value for value in given if isinstance(value, bool)), None)


def _series(name: str, sizes: list[model.Size], notes: list[Reason]) -> model.SizeSeries:
    known = all(size.num_parameters for size in sizes)
    sizes.sort(key=lambda size: (size.num_parameters or 0 if known else 0, size.num_bytes))
    fit = fit_of(sizes)
    if len(sizes) == 1:
        notes += because("one_size", series=name)
    elif fit is None:
        notes += because("few_sizes", series=name, fewest=FEWEST_SIZES)
    if not known:
        unknown = tuple(size.checkpoint for size in sizes if not size.num_parameters)
        notes += because("no_parameters", series=name, checkpoints=unknown)
    return model.SizeSeries(name=name, sizes=tuple(sizes), fit=fit)


def _size(
    kinds: _Points, num_parameters: Callable[[SweepPoint], int | None], notes: list[Reason]
) -> model.Size | None:
    """Returns the comparison of one checkpoint; None, with a note, where there is none."""
    every = [repeats for points in kinds.values() for repeats in points]
    first = every[0][0].series
    for end in _endings(every):
        if left_out := end.failed + end.skipped:
            notes += because(
                "repeats_left_out",
                point=end.point,
                left_out=left_out,
                repeats=left_out + end.passed,
                said=end.reason,
            )
    times: dict[bool, dict[str, list[float]]] = {}
    for background, points in kinds.items():
        if not points:
            value = json.dumps(background)
            notes += because("no_partner", point=first.name, option=OPTION, value=value)
            return None
        times[background] = {
            operation: [
                value
                for repeats in points
                for value in OperationTimes.of(repeats).per_repeat().get(operation, ())
            ]
            for operation in (BLOCKED, TOTAL)
        }
    for background, operations in times.items():
        lacking = tuple(operation for operation, values in operations.items() if not values)
        if lacking:
            name = kinds[background][0][0].series.name
            notes += because("no_times", point=name, operations=lacking)
            return None
    num_bytes = next(
        (
            record.state.num_bytes
            for repeats in every
            for repeat in repeats
            for record in repeat.records.values()
            if record.state is not None
        ),
        0,
    )
    if not num_bytes:
        notes += because("no_bytes", point=first.name)
        return None
    return model.Size(
        checkpoint=first.point.checkpoint.label,
        num_parameters=num_parameters(first.point),
        num_bytes=num_bytes,
        blocking=_kind(kinds[False], times[False]),
        background=_kind(kinds[True], times[True]),
        saved=ratio_of(times[True][BLOCKED], times[False][BLOCKED]).complement,
        overhead=ratio_of(times[True][TOTAL], times[False][TOTAL]),
    )


def _kind(points: Sequence[list[Repeat]], times: Mapping[str, Sequence[float]]) -> model.SaveKind:
    return model.SaveKind(
        point_ids=tuple(repeats[0].series.id for repeats in points),
        failed=sum(end.failed + end.skipped for end in _endings(points)),
        blocked=seconds_of(times[BLOCKED]),
        total=seconds_of(times[TOTAL]),
    )


def _endings(points: Iterable[list[Repeat]]) -> list[PointStatus]:
    return [end for repeats in points for end in summarize(repeats).points]


def _series_key(point: SweepPoint) -> str:
    """Returns all that two points of a series have in common."""
    return json.dumps(
        {
            **_aspects(point),
            "benchmark": point.benchmark,
            "conditions": point.conditions.model_dump(mode="json"),
        },
        sort_keys=True,
    )


def _aspects(point: SweepPoint) -> dict[str, Any]:
    """Returns the keys of the suite that may differ between the series of a run."""
    return {
        **{name: value for name, value in point.options.items() if name not in _NAMES},
        "mesh": None
        if point.mesh is None
        else point.mesh.model_dump(mode="json", exclude={"name"}),
        "processes": point.processes,
        "storage": point.storage,
        "environment": None if point.environment is None else point.environment.identity,
        "cache": point.conditions.cache,
    }


def _checkpoint_key(point: SweepPoint) -> str:
    # The order of the leaves is the order in which a checkpoint is written.
    return json.dumps(point.checkpoint.model_dump(mode="json", exclude={"name"}))


def _names(series: Sequence[_Points]) -> list[str]:
    """Names each series by its benchmark and by what differs between those of one benchmark."""
    points = [
        next(repeats for kind in points.values() for repeats in kind)[0].series.point
        for points in series
    ]
    aspects = [_aspects(point) for point in points]
    names = []
    for point, own in zip(points, aspects, strict=True):
        others = [
            aspect
            for other, aspect in zip(points, aspects, strict=True)
            if other.benchmark == point.benchmark
        ]
        shown = {
            **own,
            "mesh": "none" if point.mesh is None else point.mesh.label,
            "environment": "none" if point.environment is None else point.environment.name,
        }
        parts = [
            f"{name}={setting_text(shown[name])}"
            for name, value in own.items()
            if any(other.get(name) != value for other in others)
        ]
        label = f"[{','.join(parts)}]" if parts else ""
        names.append(f"{short_name(point.benchmark)}{label}")
    return names
