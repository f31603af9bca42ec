"""Columns of TensorBoard's HParams tab: what tells the points of a run apart."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import SessionStartInfo

from orbax_bench_core.errors import without_credentials
from orbax_bench_core.records import Series
from orbax_bench_core.sweep import Pair

Value = bool | float | str
_NOT_SWEPT: Final = {"benchmark", "options", "given", "checkpoint", "mesh", "label"}


def columns(every: Iterable[Series]) -> dict[str, dict[str, Value]]:
    """Returns the hyperparameters of each series, by its id.

    A column holds one type, so that it can be sorted: numbers, true or false, or text. Where points
    differ in type, all of them become text. A value of none stays out, and its cell empty.
    """
    rows = {series.id: _parameters(series) for series in every}
    kinds: dict[str, set[type]] = {}
    for row in rows.values():
        for name, value in row.items():
            kinds.setdefault(name, set()).add(
                type(value) if isinstance(value, bool | str) else float
            )
    for row in rows.values():
        for name, value in row.items():
            if isinstance(value, str):
                row[name] = without_credentials(value)
            elif len(kinds[name]) > 1:
                row[name] = json.dumps(value)
    return rows


def experiment(
    name: str, created: float, rows: Mapping[str, Mapping[str, Value]], metrics: Mapping[str, str]
) -> api_pb2.Experiment:
    """Returns the message that declares the columns.

    Args:
        name: Name of the suite.
        created: When the run began, in seconds since 1970.
        rows: Parameters of each row, by its name.
        metrics: Title of each metric, by its tag.
    """
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
    for tag, title in metrics.items():
        found.metric_infos.add(display_name=title).name.tag = tag
    return found


def session_start(group: str, began: float, parameters: Mapping[str, Value]) -> SessionStartInfo:
    """Returns the message that makes a point a row; points of one group would become one row.

    Args:
        group: Name of the row.
        began: When it began, in seconds since 1970.
        parameters: Its value in each column.
    """
    info = SessionStartInfo(group_name=group, start_time_secs=began)
    for name, value in parameters.items():
        kind = {bool: "bool", str: "string"}.get(type(value), "number")
        setattr(info.hparams[name], f"{kind}_value", value)
    return info


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
