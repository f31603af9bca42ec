"""Loading of a suite file: a checked `Suite`, every mistake named by file, line and key."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pydantic

from orbax_bench_core.config.blocks import is_optional, keys_at, unknown_key
from orbax_bench_core.config.checkpoint import SpecError, readable_spec
from orbax_bench_core.config.errors import TYPES, SuiteError, explain, is_consequence
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflicts
from orbax_bench_core.config.override import PLURALS, overridden, with_overrides
from orbax_bench_core.config.source import MAX_CHARACTERS, KeyPath, SuiteSource
from orbax_bench_core.config.suite import ARMS, Suite
from orbax_bench_core.errors import CREDENTIALS, Problem, did_you_mean, has_credentials
from orbax_bench_core.files import opened

_UNAVAILABLE_KEYS = {
    "simdevice": "simulated devices need the `simdevice` plugin, which is not published",
}
_REMOVE = "remove the block (here: --override {}=null) and the suite runs on what this machine has"
_MOST_EXPLAINED = 100
_DEAD_KEYS = {"reuse_checkpoint": "has no effect, here or in Orbax's own framework"}


@dataclasses.dataclass(frozen=True)
class LoadedSuite:
    """A suite with what is needed to talk about the file it came from.

    Attributes:
        suite: The checked suite.
        source: The file, which knows the line of every key.
        text: The file's text, so that another machine can be handed the same suite.
        notes: Things in the file that have no effect, for people to read.
    """

    suite: Suite
    source: SuiteSource
    text: str
    notes: tuple[str, ...]


def load_suite(path: str, overrides: Sequence[str] = ()) -> LoadedSuite:
    """Reads a suite file."""
    try:
        with opened(path) as file:
            # Of a file that is far too long, no more than shows that it is.
            data = file.read(4 * MAX_CHARACTERS + 1)
        text = data.decode(errors="strict" if len(data) <= 4 * MAX_CHARACTERS else "replace")
    except UnicodeDecodeError:
        raise SuiteError(Problem("not a text file; a suite is a YAML file", file=path)) from None
    except FileNotFoundError:
        message = "no such file; `orbax-bench init` writes a suite"
        raise SuiteError(Problem(message, file=path)) from None
    except IsADirectoryError:
        raise SuiteError(Problem("a folder; a suite is a YAML file", file=path)) from None
    except (OSError, ImportError, ValueError) as error:
        raise SuiteError(Problem(f"cannot read the suite: {error}", file=path)) from None
    return parse_suite(with_overrides(text, overrides, path), path)


def parse_suite(text: str, file: str = "") -> LoadedSuite:
    """Checks the text of a suite file; messages name `file`."""
    source = overridden(SuiteSource(text, file))
    if not isinstance(source.data, dict):
        kind = TYPES.get(type(source.data), type(source.data).__name__)
        raise SuiteError(source.problem(f"a suite is a mapping of keys to values, got {kind}", ()))
    notes: list[str] = []
    data, plural_paths = _with_plurals(source.data, notes)
    problems: list[Problem] = []
    data = _without_dead(data, source, notes, problems)
    problems += _credentials(source, text)
    problems += _environments_of_arms(data, source)
    more = 0
    try:
        suite = Suite.model_validate(data)
        data["checkpoint_configs"] = [vars(given) for given in suite.checkpoint_configs]  # parsed
    except pydantic.ValidationError as error:
        # Explaining one may take a millisecond, and nobody mends more than a screen of them.
        every = error.errors(include_url=False)
        details = [detail for detail in every if not is_consequence(detail)]
        for detail in details[:_MOST_EXPLAINED]:
            problems += _explain(detail, source, plural_paths)
        more = max(0, len(details) - _MOST_EXPLAINED)
    problems += _meshes_against_specs(data, source, plural_paths)
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        if more:
            problems.append(Problem(f"{more:,} more mistakes; these were the first", file=file))
        raise SuiteError(*dict.fromkeys(problems))
    return LoadedSuite(suite=suite, source=source, text=text, notes=tuple(notes))


def _credentials(source: SuiteSource, text: str) -> list[Problem]:
    """Returns where an address has credentials.

    `run.json` has the file word for word, comments included. Left out of what
    is kept they would change the ids of points, which hash their options.
    """
    lines = [number for number, line in enumerate(text.splitlines(), 1) if has_credentials(line)]
    problems = [Problem(CREDENTIALS, file=source.file, line=number) for number in lines]
    if not problems:  # or a value is written in another way, such as by escapes
        problems = [
            source.problem(CREDENTIALS, path)
            for path, value in _texts(source.data, ())
            if has_credentials(value)
        ]
    return problems


def _texts(data: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yields every text in plain data, and where it stands."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, (*path, index))


def _with_plurals(
    data: dict[Any, Any], notes: list[str]
) -> tuple[dict[Any, Any], dict[str, KeyPath]]:
    """Turns singular keys into one-item lists; returns the file's path of each renamed list."""
    data = dict(data)
    renamed: dict[str, KeyPath] = {}
    for singular, plural in PLURALS.items():
        if singular not in data:
            continue
        value = data.pop(singular)
        if plural in data:
            notes.append(f"`{singular}` is ignored because `{plural}` is given")
        elif value is not None:
            data[plural] = [value]
            renamed[plural] = (singular,)
    return data, renamed


def _without_dead(
    data: dict[Any, Any], source: SuiteSource, notes: list[str], problems: list[Problem]
) -> dict[Any, Any]:
    """Notes what cannot be had as a problem; drops it, and keys that never did anything."""
    for key, reason in _UNAVAILABLE_KEYS.items():
        if key in data:
            problems.append(source.problem(f"{reason}; {_REMOVE.format(key)}", (key,)))
    for key, reason in _DEAD_KEYS.items():
        if key in data:
            notes.append(f"`{key}` {reason}")
    gone = {*_UNAVAILABLE_KEYS, *_DEAD_KEYS}
    return {name: value for name, value in data.items() if name not in gone}


def _explain(detail: Any, source: SuiteSource, plural_paths: dict[str, KeyPath]) -> list[Problem]:
    location = tuple(part for part in detail["loc"] if part != "[key]")
    if detail["type"] == "invalid_key":
        location = location[:-1]
    path = _file_path(location, plural_paths)
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return [
            source.problem(message, (*path, *where))
            for message, where in cause.mistakes[:_MOST_EXPLAINED]
        ]
    return [source.problem(_said(detail, location), path)]


def _said(detail: Any, location: KeyPath) -> str:
    """Returns the message of an error at a place of the suite, by what the suite may have there."""
    kind, given = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return unknown_key(location, given)
    message = explain(detail, ())
    if kind == "model_type":
        return f"{message}; its keys: {', '.join(sorted(keys_at(location)))}"
    if given is None and kind.endswith("_type") and is_optional(location):
        return f"{message}; leave the key out for what it is by default"
    return message


def _file_path(location: KeyPath, plural_paths: dict[str, KeyPath]) -> KeyPath:
    first = location[0] if location else ""
    if first in plural_paths:
        return plural_paths[str(first)] + location[2:]
    return location


def _meshes_against_specs(
    data: dict[Any, Any], source: SuiteSource, plural_paths: dict[str, KeyPath]
) -> list[Problem]:
    """Returns the shardings that no mesh of the suite can honour, before anything runs.

    It looks at plain data, which may be wrong in other ways: at the specs as far as they can be
    read, and at the axes alone of a mesh whose sizes cannot.
    """
    meshes = _readable_meshes(data)
    if not meshes:
        return []
    found: list[tuple[KeyPath, str]] = []
    for index, checkpoint in enumerate(_items(data.get("checkpoint_configs"))):
        given = checkpoint.get("spec") if isinstance(checkpoint, dict) else None
        spec, _ = readable_spec(given or {})
        conflicts = [list(sharding_conflicts(spec, mesh)) for mesh in meshes]
        if not all(conflicts):
            continue
        # A leaf that some mesh can hold is a mistake only where no leaf is to blame alone.
        everywhere = set.intersection(
            *({conflict.where for conflict in of_mesh} for of_mesh in conflicts)
        )
        found += [
            (("checkpoint_configs", index, "spec", *conflict.where), conflict.message)
            for conflict in itertools.chain.from_iterable(conflicts)
            if conflict.where in everywhere or not everywhere
        ]
    return [
        source.problem(message, _file_path(where, plural_paths))
        for where, message in found[:_MOST_EXPLAINED]
    ]


def _readable_meshes(data: dict[Any, Any]) -> list[MeshConfig | None]:
    """Returns the meshes of a suite; none where one of them is not known, not even its axes."""
    if data.get("mesh_configs") is None:
        unknown = (str(key) for key in data if key != "mesh_configs")
        return [] if any("mesh" in key for key in unknown) else [None]
    found: list[MeshConfig | None] = []
    for given in _items(data["mesh_configs"]):
        axes = {"mesh_axes": given.get("mesh_axes")} if isinstance(given, dict) else {}
        for tried in (given, axes):
            with contextlib.suppress(pydantic.ValidationError):
                found.append(MeshConfig.model_validate(tried))
                break
        else:
            return []
    return found


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _environments_of_arms(data: dict[Any, Any], source: SuiteSource) -> list[Problem]:
    """Returns unknown environments of arms; of plain data, which may be wrong in other ways."""
    environments, arms = data.get("environments"), data.get("arms")
    if not isinstance(arms, dict):
        return []
    known = [
        each["name"]
        for each in (environments if isinstance(environments, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]
    problems = []
    for name in ARMS:
        arm = arms.get(name)
        given = arm.get("environment") if isinstance(arm, dict) else None
        if isinstance(given, str) and given not in known:
            hint = did_you_mean(given, known) if known else "define it under `environments`"
            where = ("arms", name, "environment")
            problems.append(source.problem(f"unknown environment {given!r}; {hint}", where))
    return problems
