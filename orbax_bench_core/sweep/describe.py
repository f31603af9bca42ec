"""What the options of a benchmark are, for people."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from orbax_bench_core.authoring.generator import BenchmarksGenerator
from orbax_bench_core.sweep.load_class import options_class
from orbax_bench_core.sweep.options import describe_type


@dataclasses.dataclass(frozen=True, slots=True)
class OptionDescription:
    """One option of a benchmark.

    Attributes:
        name: Its key in the suite file.
        type: What one value may be.
        default: What it is when the suite file does not give it.
        meaning: What its class's docstring says of it.
    """

    name: str
    type: str
    default: Any
    meaning: str


def describe_options(generator: type[BenchmarksGenerator]) -> list[OptionDescription]:
    """Returns the options of a benchmark, its own before those that every benchmark has."""
    own = options_class(generator)
    meanings = _meanings(own)
    types = typing.get_type_hints(own)
    described = [
        OptionDescription(
            name=field.name,
            type=describe_type(types[field.name]),
            default=None if field.default is dataclasses.MISSING else field.default,
            meaning=meanings.get(field.name, ""),
        )
        for field in dataclasses.fields(own)
    ]
    inherited = {field.name for base in own.__bases__ for field in _fields(base)}
    return sorted(described, key=lambda option: option.name in inherited)


def _fields(class_: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(class_) if dataclasses.is_dataclass(class_) else ()


def _meanings(class_: type) -> dict[str, str]:
    import docstring_parser

    meanings: dict[str, str] = {}
    for base in reversed(class_.__mro__):
        for parameter in docstring_parser.parse(base.__doc__ or "").params:
            meanings[parameter.arg_name] = " ".join((parameter.description or "").split())
    return meanings
