"""Content of the HParams tab: the series of a run, with typed columns and metrics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orbax_bench_core.errors import without_credentials
from orbax_bench_core.records import Series
from orbax_bench_core.sweep import Pair

EXPERIMENT_TAG = "_hparams_/experiment"
SESSION_START_TAG = "_hparams_/session_start_info"
SESSION_END_TAG = "_hparams_/session_end_info"

Value = bool | float | str
_NOT_SWEPT = {"benchmark", "options", "given", "checkpoint", "mesh", "label"}


class Metric(NamedTuple):
    """A metric column.

    Attributes:
        tag: Scalar tag in the run of each point.
        title: Heading of the column.
    """

    tag: str
    title: str


def columns(every: Iterable[Series]) -> dict[str, dict[str, Value]]:
    """Returns the hyperparameters of each series, by its id.

    A column holds one type, so that it can be sorted: numbers, true or false, or text. Where points
    differ in type, all of them become text. A value of none stays out, and its cell empty.
    """
    rows = {series.id: _parameters(series) for series in every}
    kinds: dict[str, set[type]] = {}
    for row in rows.values():
        for name, value in row.items():
            kind = type(value) if isinstance(value, bool | str) else float
            kinds.setdefault(name, set()).add(kind)
    mixed = {name for name, types in kinds.items() if len(types) > 1}
    return {
        point_id: {
            name: without_credentials(value)
            if isinstance(value, str)
            else (json.dumps(value) if name in mixed else value)
            for name, value in row.items()
        }
        for point_id, row in rows.items()
    }


def experiment(
    name: str, created: float, rows: Mapping[str, Mapping[str, Value]], metrics: Sequence[Metric]
) -> bytes:
    """Returns the message that declares the columns.

    Args:
        name: Name of the suite.
        created: When the run began, in seconds since the epoch.
        rows: What `columns` returned.
        metrics: The metric columns; TensorBoard shows no others.
    """
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2

    found = api_pb2.Experiment(name=name, time_created_secs=created)
    for column in sorted({name for row in rows.values() for name in row}):
        values = [row[column] for row in rows.values() if column in row]
        distinct = sorted(set(values))
        differs = len(distinct) > 1 or len(values) < len(rows)
        info = found.hparam_infos.add(name=column, differs=differs)
        if isinstance(distinct[0], bool | str):
            is_text = isinstance(distinct[0], str)
            info.type = api_pb2.DATA_TYPE_STRING if is_text else api_pb2.DATA_TYPE_BOOL
            info.domain_discrete.extend(distinct)
        else:
            info.type = api_pb2.DATA_TYPE_FLOAT64
            info.domain_interval.min_value = distinct[0]
            info.domain_interval.max_value = distinct[-1]
    for metric in metrics:
        entry = found.metric_infos.add(display_name=metric.title)
        entry.name.tag = metric.tag
    return _message(plugin_data_pb2.HParamsPluginData(experiment=found))


def session_start(group: str, began: float, parameters: Mapping[str, Value]) -> bytes:
    """Returns the message that makes a point a row.

    Args:
        group: What the row is called; points with the same name would become one row.
        began: When the point was first measured, in seconds since the epoch.
        parameters: The hyperparameters of the point.
    """
    from tensorboard.plugins.hparams import plugin_data_pb2

    info = plugin_data_pb2.SessionStartInfo(group_name=group, start_time_secs=began)
    for name, value in parameters.items():
        cell = info.hparams[name]
        if isinstance(value, bool):
            cell.bool_value = value
        elif isinstance(value, str):
            cell.string_value = value
        else:
            cell.number_value = value
    return _message(plugin_data_pb2.HParamsPluginData(session_start_info=info))


def session_end(ended: float, *, passed: bool) -> bytes:
    """Returns the message that says how a point ended.

    Args:
        ended: When its last repeat ended, in seconds since the epoch.
        passed: Whether every repeat passed.
    """
    from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2

    status = api_pb2.STATUS_SUCCESS if passed else api_pb2.STATUS_FAILURE
    info = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=ended)
    return _message(plugin_data_pb2.HParamsPluginData(session_end_info=info))


def _message(data: Any) -> bytes:
    return bytes(data.SerializeToString(deterministic=True))


def _parameters(series: Series) -> dict[str, Value]:
    point = series.point
    found: list[tuple[str, tuple[str, ...], Any]] = [
        ("benchmark", (), series.name.partition("[")[0]),
        ("checkpoint", (), point.checkpoint.label),
        ("checkpoint_bytes", (), point.checkpoint.num_bytes),
        ("mesh", (), None if point.mesh is None else point.mesh.label),
        ("devices", (), point.num_devices),
    ]
    found += [("options", path, value) for path, value in _flatten(point.options)]
    rest = series_fields(series, exclude=_NOT_SWEPT)
    found += [(path[0], path[1:], value) for path, value in _flatten(rest)]
    short = Counter(".".join(path) or block for block, path, _ in found)
    named = {}
    for block, path, value in found:
        name = ".".join(path) or block
        named[name if short[name] == 1 else ".".join((block, *path))] = value
    return {
        name: value if isinstance(value, bool | int | float | str) else json.dumps(value)
        for name, value in named.items()
        if value is not None
    }


def series_fields(series: Series, *, exclude: set[str]) -> dict[str, Any]:
    """Returns the fields of a series' point as plain data and, of an arm, its pair and itself."""
    fields = series.point.model_dump(mode="json", exclude=exclude)
    if isinstance(series.entry, Pair):
        fields |= {"pair": series.entry.id, "arm": series.arm}
    return fields


def _flatten(
    values: Mapping[str, Any], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*prefix, str(name)))
        else:
            yield (*prefix, str(name)), value
