"""Axes that a suite may sweep, from the models of a suite and the options of the built-ins."""

from __future__ import annotations

import typing
from typing import Any, NamedTuple

import pydantic

from orbax_bench_core.config import ArmConfig, ConfigModel, ExecutionConfig, Suite
from orbax_bench_core.sweep.catalog import BUILTINS
from orbax_bench_core.sweep.classes import load_class
from orbax_bench_core.sweep.options import describe_options

_OPTIONS = "options"


class Axis(NamedTuple):
    """One thing of which a suite may give several values, each of which is a point of its own.

    Attributes:
        place: The block of the suite; of an option its benchmark.
        name: The key there; empty for the block itself.
    """

    place: str
    name: str

    def __str__(self) -> str:
        """Returns it as documents name it."""
        return ".".join(filter(None, self))


def swept_keys(model: type[pydantic.BaseModel]) -> tuple[str, ...]:
    """Returns the keys of a block that take a list of values."""
    return tuple(
        name for name, field in model.model_fields.items() if _item(field.annotation) is not None
    )


def sweepable_axes() -> tuple[Axis, ...]:
    """Returns every axis: of blocks first, then of the options of each built-in benchmark."""
    axes = []
    for key in swept_keys(Suite):
        item = _item(Suite.model_fields[key].annotation)
        keys = item.model_fields if _is_block(item) else {"": None}
        axes += [Axis(key, name) for name in keys if name != _OPTIONS]
    axes += [Axis("execution", key) for key in swept_keys(ExecutionConfig)]
    axes += [Axis("arms", key) for key in ArmConfig.model_fields]
    for benchmark in BUILTINS:
        axes += [Axis(benchmark, one.name) for one in describe_options(load_class(benchmark))]
    return tuple(axes)


def _item(annotation: Any) -> Any:
    """Returns what each item of a list is; None for what is no list."""
    if typing.get_origin(annotation) is tuple:
        return typing.get_args(annotation)[0]
    return next(filter(None, map(_item, typing.get_args(annotation))), None)


def _is_block(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, ConfigModel)
