"""From the options of a suite to one options instance per combination."""

from __future__ import annotations

import dataclasses
import itertools
import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pydantic

from orbax_bench_core.authoring.options import BenchmarkOptions
from orbax_bench_core.config.errors import did_you_mean

_SWEEP_ORIGINS = {list, typing.get_origin(Sequence[int])}


class OptionError(ValueError):
    """An option that the benchmark does not take; `key` names it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def axes(options_class: type[BenchmarkOptions], given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Returns the values of every option, in the order that the class declares them.

    Args:
        options_class: The benchmark's options.
        given: Options as the suite file has them; a list is a sweep axis.

    Raises:
        OptionError: An unknown option, an empty list, or a value of the wrong type.
    """
    fields = {field.name: field for field in dataclasses.fields(options_class)}
    for key in given:
        if key not in fields:
            raise OptionError(key, f"unknown option; {did_you_mean(str(key), fields)}")
    types = _annotations(options_class)
    result = {}
    for name, field in fields.items():
        value = given[name] if name in given else _default(field)
        values = value if isinstance(value, list) else [value]
        if not values:
            raise OptionError(
                name, "an empty list leaves nothing to sweep; give at least one value"
            )
        if name in given and name in types:
            for item in values:
                _check_type(name, item, types[name])
        result[name] = _distinct(values)
    return result


def combinations(values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yields every combination of the axes; the last option varies fastest."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise OptionError(field.name, "this option is required")
    return field.default


def _distinct(values: list[Any]) -> list[Any]:
    # JSON tells true from 1, which Python's equality does not.
    return list({json.dumps(value, default=repr): value for value in values}.values())


def _annotations(options_class: type[BenchmarkOptions]) -> dict[str, Any]:
    if options_class.from_dict.__func__ is not BenchmarkOptions.from_dict.__func__:  # type: ignore[attr-defined]
        return {}  # the class builds its own values from whatever it accepts
    return typing.get_type_hints(options_class)


def _check_type(name: str, value: Any, annotation: Any) -> None:
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(
        annotation, config=pydantic.ConfigDict(strict=True, arbitrary_types_allowed=True)
    )
    try:
        adapter.validate_python(value)
    except pydantic.ValidationError:
        raise OptionError(name, f"expected {describe_type(annotation)}, got {value!r}") from None


def describe_type(annotation: Any) -> str:
    """Returns an option's type for people, without the list form that only means a sweep."""
    members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    names = [
        "null" if member is type(None) else getattr(member, "__name__", str(member))
        for member in members
        if typing.get_origin(member) not in _SWEEP_ORIGINS
    ]
    return " or ".join(names) or str(annotation)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)
