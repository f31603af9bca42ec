"""Options of a benchmark and axes of a suite: what may be swept, in which combinations."""

import dataclasses
import functools
import inspect
import itertools
import json
import operator
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pydantic

from orbax_bench_core import config
from orbax_bench_core.errors import CREDENTIALS, did_you_mean, has_credentials, shortened, shown
from orbax_bench_core.interface import LATER, BenchmarkOptions, BenchmarksGenerator
from orbax_bench_core.sweep.catalog import BUILTINS, author_line, load_class, options_class

_TRACES = ("enable_trace", "enable_xprof", "trace_every_repeat")
_SWEEP_ORIGINS = {list, typing.get_origin(Sequence[int])}


class OptionError(ValueError):
    """Options that a benchmark does not take: of each its name, empty for all together, and why."""

    def __init__(self, *mistakes: tuple[str, str]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


def axes(options_class: type[BenchmarkOptions], given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Returns the values of every option, in the order that the class declares them.

    An option that came later is among them only where it is given.

    Raises:
        OptionError: All that is wrong with what is given.
    """
    fields = {field.name: field for field in dataclasses.fields(options_class)}
    mistakes = [
        (key, f"unknown option; {did_you_mean(str(key), fields)}")
        for key in given
        if key not in fields
    ]
    types = _annotations(options_class)
    result = {}
    for name, field in fields.items():
        if name not in given and LATER.items() <= field.metadata.items():
            continue
        try:
            result[name] = _axis(field, given, types)
        except OptionError as error:
            mistakes += error.mistakes
    if mistakes:
        raise OptionError(*mistakes)
    return result


def _axis(
    field: dataclasses.Field[Any], given: Mapping[str, Any], types: Mapping[str, Any]
) -> list[Any]:
    """Returns the values of one option, each once."""
    name = field.name
    value = given[name] if name in given else _default(field)
    values = value if isinstance(value, list) else [value]
    if not values:
        raise OptionError((name, "an empty list leaves nothing to sweep; give at least one value"))
    if name in given and name in types:
        _check_type(name, values, types[name])
    if name in _TRACES and len(values) > 1:
        message = "only warm-ups are traced, so all points would be the same; give one value"
        raise OptionError((name, message))
    # Defaults of the class, too.
    if has_credentials(json.dumps(values, default=repr, skipkeys=True)):
        raise OptionError((name, CREDENTIALS))
    try:
        # JSON tells true from 1, which Python's equality does not.
        written = [json.dumps(one, default=repr, allow_nan=False) for one in values]
        return list(dict(zip(written, values, strict=True)).values())
    except ValueError:
        raise OptionError((name, f"a number must be finite, got {shown(value)}")) from None


def combinations(values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yields every combination of the axes; the last option varies fastest."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def is_valid(options_class: type[BenchmarkOptions], given: Mapping[str, Any]) -> bool:
    """Returns the class's answer to one combination of options.

    Raises:
        OptionError: The class raised an error; the message has the line of its module.
    """
    try:
        return bool(options_class.from_dict(dict(given)).is_valid())
    except (Exception, SystemExit) as error:  # is_valid is anyone's code
        message = (
            f"{options_class.__name__} rejects {dict(given)}: "
            f"{type(error).__name__}: {error}{author_line(error)}"
        )
        raise OptionError(("", message)) from error


def reason_of_rejection(options_class: type[BenchmarkOptions]) -> str:
    """Returns why a class rejects combinations: what its `is_valid` says of itself."""
    said = " ".join((inspect.getdoc(options_class.is_valid) or "").split())
    return f": {shortened(said.rstrip('.'))}" if said else ""


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one combination as plain data, as a sweep point keeps it."""
    found: dict[str, Any] = json.loads(json.dumps(options, default=repr))
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    if field.default is dataclasses.MISSING:
        raise OptionError((field.name, "this option is required"))
    return field.default


def _annotations(options_class: type[BenchmarkOptions]) -> dict[str, Any]:
    if options_class.from_dict.__func__ is not BenchmarkOptions.from_dict.__func__:  # type: ignore[attr-defined]
        return {}  # the class builds its own values from whatever it accepts
    return typing.get_type_hints(options_class)


def _check_type(name: str, values: Sequence[Any], annotation: Any) -> None:
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(
        _value_type(annotation),
        config=pydantic.ConfigDict(strict=True, arbitrary_types_allowed=True),
    )
    for value in values:
        try:
            adapter.validate_python(value)
        except pydantic.ValidationError:
            members = _members(annotation)
            allowed = (
                config.TYPES[one] if one in config.TYPES else _describe_member(one)
                for one in members
            )
            raise OptionError((name, config.mistyped(" or ".join(allowed), value))) from None


def _members(annotation: Any) -> tuple[Any, ...]:
    value_type = _value_type(annotation)
    return typing.get_args(value_type) if _is_union(value_type) else (value_type,)


def _describe_member(member: Any) -> str:
    if typing.get_origin(member) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(member)))
    return "null" if member is type(None) else getattr(member, "__name__", str(member))


def _value_type(annotation: Any) -> Any:
    """Returns the type of one value: the list form of an annotation only means a sweep."""
    if typing.get_origin(annotation) in _SWEEP_ORIGINS:
        return typing.get_args(annotation)[0]
    if not _is_union(annotation):
        return annotation
    return functools.reduce(operator.or_, map(_value_type, typing.get_args(annotation)))


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


@dataclasses.dataclass(frozen=True, slots=True)
class OptionDescription:
    """One option of a benchmark; its meaning is what its class's docstring says of it."""

    name: str
    type: str
    default: Any
    meaning: str
    required: bool = False


def option_types(generator: type[BenchmarksGenerator]) -> dict[str, Any]:
    """Returns the type of one value of each option, which may also be a list of them in a suite.

    It is empty for a class that builds its options from whatever it accepts.
    """
    own = options_class(generator)
    types = _annotations(own)
    return {field.name: _value_type(types[field.name]) for field in _fields(own) if types}


def describe_options(generator: type[BenchmarksGenerator]) -> list[OptionDescription]:
    """Returns the options of a benchmark, its own before those that every benchmark has."""
    own = options_class(generator)
    known = config.meanings(own)
    types = typing.get_type_hints(own)
    described = [
        OptionDescription(
            name=field.name,
            type=" or ".join(map(_describe_member, _members(types[field.name]))),
            default=None if field.default is dataclasses.MISSING else field.default,
            meaning=known.get(field.name, ""),
            required=field.default is field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(own)
    ]
    inherited = {field.name for base in own.__bases__ for field in _fields(base)}
    return sorted(described, key=lambda option: option.name in inherited)


def _fields(class_: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(class_) if dataclasses.is_dataclass(class_) else ()


_OPTIONS = "options"


class Axis(NamedTuple):
    """One thing of which a suite may give several values, each of which is a point of its own.

    Its place is the block of the suite, of an option its benchmark; the name is empty for the block
    itself.
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
    for key in swept_keys(config.Suite):
        item = _item(config.Suite.model_fields[key].annotation)
        is_block = isinstance(item, type) and issubclass(item, config.ConfigModel)
        keys = item.model_fields if is_block else {"": None}
        axes += [Axis(key, name) for name in keys if name != _OPTIONS]
    axes += [Axis("execution", key) for key in swept_keys(config.ExecutionConfig)]
    axes += [Axis("arms", key) for key in config.ArmConfig.model_fields]
    for benchmark in BUILTINS:
        axes += [Axis(benchmark, one.name) for one in describe_options(load_class(benchmark))]
    return tuple(axes)


def _item(annotation: Any) -> Any:
    """Returns the type of each item of a list, or None if it is not a list."""
    if typing.get_origin(annotation) is tuple:
        return typing.get_args(annotation)[0]
    return next(filter(None, map(_item, typing.get_args(annotation))), None)
