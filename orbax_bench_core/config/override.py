"""Overrides: values of a command line in place of those of a suite file.

They travel inside the suite's text, under the key `overrides`, so that a later reader of the text
(a process that expands it, a pipeline step on another machine, a run that is continued) sees the
same suite, and so that a message can say that a value came from the command line.
"""

import contextlib
import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.source import (
    MAX_DEPTH,
    MAX_VALUES,
    KeyPath,
    SuiteSource,
    dotted,
    read_value,
)
from orbax_bench_core.errors import Problem, shortened, shown

KEY: Final = "overrides"
"""Key of a suite that holds overrides: a list of `KEY.PATH=VALUE`."""

FLAG: Final = "--override"

_EVERY: Final = "*"
PLURALS: Final = {"checkpoint_config": "checkpoint_configs", "mesh_config": "mesh_configs"}


def with_overrides(text: str, overrides: Sequence[str], file: str = "") -> str:
    """The text of a suite with overrides added, each in the form that `overridden` takes."""
    if not overrides:
        return text
    for override in overrides:
        _parse(override)
    return with_keys(text, {KEY: list(overrides)}, file)


def override_flags(text: str) -> list[str]:
    """Returns the flags of a command line whose overrides the text of a suite carries, if any."""
    try:
        data = SuiteSource(text).data
    except SuiteError:  # the text that a run has kept, which may be damaged
        return []
    given = data.get(KEY) if isinstance(data, dict) else None
    every = given if isinstance(given, list) else []
    return [word for each in every for word in (FLAG, str(each))]


def overridden(source: SuiteSource) -> SuiteSource:
    """Returns a suite's source with the overrides that it carries applied to its data.

    A path is the keys from the top, with dots between: `checkpoint_config.scale`. An item of a list
    is its number, `benchmarks.0.options.use_ocdbt` or `benchmarks[0].options.use_ocdbt`, and `*` is
    every item; a singular `checkpoint_config` or `mesh_config` is every item of the plural where
    the file has that. Mappings that are missing on the way are made. The value is read as YAML; a
    block of the suite that is set to `null` is taken away.
    """
    if not isinstance(source.data, dict) or KEY not in source.data:
        return source
    given = source.data[KEY]
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        message = f"expected a list of KEY.PATH=VALUE, got {shown(given)}"
        raise SuiteError(source.problem(message, (KEY,)))
    data = {key: value for key, value in copy.deepcopy(source.data).items() if key != KEY}
    applied: dict[KeyPath, str] = {}
    left = MAX_VALUES
    for override in given:
        path, value = _parse(override)
        # All places are found before any is set, so that `*` means what the file has.
        places = list(_places(data, path, override))
        left -= len(places) * _size(value)
        if left < 0:
            raise SuiteError(
                f"{_said(override)}: more than {MAX_VALUES:,} keys and values are set; a suite may "
                "have no more"
            )
        for place in places:
            for made in _put(data, place, copy.deepcopy(value)):
                applied[made] = override
    for singular, plural in PLURALS.items():
        if (singular,) in applied:
            data.pop(plural, None)
    from orbax_bench_core.config.suite import Suite  # which knows no overrides

    # A key that no suite has stays, and is told of.
    known = {*Suite.model_fields, *PLURALS, *source.data}
    taken_away = {
        place[0]
        for place in applied
        if len(place) == 1 and data[place[0]] is None and place[0] in known
    }
    kept = {key: value for key, value in data.items() if key not in taken_away}
    return _OverriddenSource(source, kept, applied)


class _OverriddenSource(SuiteSource):
    """A source whose messages say which values came from an override."""

    def __init__(
        self, origin: SuiteSource, data: dict[Any, Any], applied: dict[KeyPath, str]
    ) -> None:
        self._origin = origin
        self._applied = applied
        self.file = origin.file
        self.data = data

    def line(self, path: KeyPath) -> int | None:
        return self._origin.line(path)

    def problem(self, message: str, path: KeyPath) -> Problem:
        for place, override in reversed(self._applied.items()):
            if path[: len(place)] == place:
                return Problem(message, key=dotted(path), file=_said(override))
        # A block may be wrong as a whole because of one value that was put into it.
        inside = [
            override for place, override in self._applied.items() if place[: len(path)] == path
        ]
        if inside and path:
            message += f" (with {_said(inside[-1])})"
        return super().problem(message, path)


def _parse(override: str) -> tuple[KeyPath, Any]:
    key, equals, text = override.partition("=")
    names = re.sub(r"\[(\d+|\*)\]", r".\1", key.strip()).split(".")
    if not equals or not all(names):
        raise SuiteError(
            f"{_said(override)}: expected KEY.PATH=VALUE, such as checkpoint_config.scale=0.01"
        )
    if len(names) > MAX_DEPTH:
        raise SuiteError(f"{_said(override)}: a path of more than {MAX_DEPTH} keys")
    return tuple(names), read_value(text, _said(override))


def _said(override: str) -> str:
    return f"{FLAG} {shortened(override)}"


def _size(value: Any) -> int:
    """Returns the number of values in plain data, its anchors written out."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _places(data: dict[Any, Any], path: KeyPath, override: str) -> Iterator[KeyPath]:
    """Yields the places in a suite that a path of names means."""
    for singular, plural in PLURALS.items():
        if path[0] == singular and plural in data and singular not in data:
            # A block given whole stands for all of them.
            path = (plural, _EVERY, *path[1:]) if path[1:] else path
        elif path[0] == plural and singular in data and plural not in data:
            path = (singular, *path[2:]) if path[1:2] in {("0",), (_EVERY,)} else path
    yield from _matching(data, path, (), override)


def _matching(node: Any, path: KeyPath, before: KeyPath, override: str) -> Iterator[KeyPath]:
    if not path:
        yield before
        return
    name, rest = str(path[0]), path[1:]
    if isinstance(node, list):
        for index in _indices(node, name, before, override):
            yield from _matching(node[index], rest, (*before, index), override)
    elif isinstance(node, dict) or node is None:
        # Names are text; a file may have keys that YAML reads as numbers.
        key = next((key for key in node or {} if str(key) == name), name)
        yield from _matching((node or {}).get(key), rest, (*before, key), override)
    else:
        raise SuiteError(
            f"{_said(override)}: {dotted(before)} is {shown(node)}, which has no keys to set"
        )


def _indices(node: list[Any], name: str, before: KeyPath, override: str) -> Sequence[int]:
    if name == _EVERY:
        return range(len(node))
    if name.isdecimal() and int(name) < len(node):
        return (int(name),)
    numbers = "0" if len(node) == 1 else f"a number from 0 to {len(node) - 1}"
    known = f"{numbers}, or {_EVERY} for every one" if node else "all of it"
    raise SuiteError(
        f"{_said(override)}: {dotted(before)} is a list of {len(node)} without item "
        f"{name!r}; give {known}"
    )


def _put(data: Any, path: KeyPath, value: Any) -> Iterator[KeyPath]:
    for depth, key in enumerate(path[:-1], start=1):
        if isinstance(data, dict) and data.get(key) is None:
            data[key] = {}
            yield path[:depth]
        data = data[key]
    data[path[-1]] = value
    yield path


def with_keys(text: str, keys: Mapping[str, Any], file: str = "") -> str:
    """Returns the text of a suite with more keys at its top level.

    Args:
        text: The suite.
        keys: What is added, as plain data.
        file: Where the suite comes from, for messages.

    Raises:
        SuiteError: The text is no mapping, or has one of the keys already.
    """
    # The keys go to the end, so that messages still name the lines of the file.
    source = SuiteSource(text, file)
    if not isinstance(source.data, dict):
        raise SuiteError(source.problem("a suite is a mapping of keys to values", ()))
    if present := [key for key in keys if key in source.data]:
        raise SuiteError(
            source.problem("given in the file as well as on the command line", (present[0],))
        )
    lines = [f"{key}: {json.dumps(value, default=str)}" for key, value in keys.items()]
    appended = "\n".join([text.rstrip("\n"), *lines]) + "\n"
    # A suite in braces, or with an end marker, cannot be added to at its end.
    with contextlib.suppress(SuiteError):
        if SuiteSource(appended, file).data == {**source.data, **keys}:
            return appended
    return yaml.safe_dump({**source.data, **keys}, sort_keys=False)
