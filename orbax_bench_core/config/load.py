"""Loading of a suite file: a checked `Suite`, every mistake named by file, line and key."""

import contextlib
import dataclasses
import itertools
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pydantic

from orbax_bench_core.config.base import TYPES, ConfigModel, SuiteError, explain, is_consequence
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflicts
from orbax_bench_core.config.override import PLURALS, overridden, with_overrides
from orbax_bench_core.config.source import MAX_CHARACTERS, KeyPath, SuiteSource
from orbax_bench_core.config.spec import SpecError, readable_spec
from orbax_bench_core.config.suite import ARMS, ArmConfig, ArmsConfig, BenchmarkEntry, Suite
from orbax_bench_core.errors import CREDENTIALS, Problem, did_you_mean, has_credentials
from orbax_bench_core.files import opened

_UNAVAILABLE_KEYS = {
    "simdevice": "simulated devices need the `simdevice` plugin, which is not published"
}
_REMOVE = "remove the block (here: --override {}=null) and the suite runs on what this machine has"
_MOST_EXPLAINED = 100
_DEAD_KEYS = {"reuse_checkpoint": "has no effect, here or in Orbax's own framework"}


@dataclasses.dataclass(frozen=True)
class LoadedSuite:
    """A checked suite with what is needed to talk about the file it came from."""

    suite: Suite
    source: SuiteSource
    text: str  # that of the file, which another machine can be handed
    notes: tuple[str, ...]  # what in it has no effect, for people


def load_suite(path: str, overrides: Sequence[str] = ()) -> LoadedSuite:
    """Reads a suite file.

    Args:
        path: The file, local or gs://.
        overrides: Changes as `--set` takes them.

    Raises:
        SuiteError: It cannot be read, or has mistakes; each problem has the line of its key.
    """
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
    """Checks the text of a suite file; messages name `file`.

    Raises:
        SuiteError: It has mistakes; each problem has the line of its key.
    """
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
        # Explaining one may take a millisecond, and nobody corrects more than a screen of them.
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
        raise SuiteError(*dict.fromkeys(problems), source=source)
    return LoadedSuite(suite=suite, source=source, text=text, notes=tuple(notes))


def _credentials(source: SuiteSource, text: str) -> list[Problem]:
    # `run.json` has the file word for word, comments included. Left out of what is kept they would
    # change the ids of points, which hash their options.
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
    """Returns the shardings that no mesh of the suite can honour, before anything runs."""
    # It looks at plain data, which may be wrong in other ways: at the specs as far as they can be
    # read, and at the axes alone of a mesh whose sizes cannot.
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
        # A leaf that some mesh can hold is a mistake only where no leaf is one by itself.
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


_OPTIONS: Final = "an option of the benchmark belongs in `options`"
_ENVIRONMENTS: Final = (
    "packages are the `requirements` of an item of `environments`, which an arm names as its "
    "`environment`"
)
_PACKAGES: Final = ("with", "packages", "requirements", "versions", "version")
"""Keys of those who mean the packages of an arm; commands that make arms have `--with`."""


def block_at(place: KeyPath) -> type[ConfigModel] | None:
    """Returns the model of the block at a place of the suite; None if there is no block."""
    found: Any = Suite
    for part in place:
        found = _inside(found, part)
    return _model(found)


def keys_at(place: KeyPath) -> list[str]:
    """Returns the keys that are allowed in the block at a place of the suite."""
    block = block_at(place)
    keys = list(block.model_fields) if block is not None else []
    return [*keys, *PLURALS] if block is Suite else keys


def is_optional(place: KeyPath) -> bool:
    """Returns whether the key at a place may be left out."""
    block = block_at(place[:-1])
    field = block.model_fields.get(str(place[-1])) if block is not None and place else None
    return field is not None and not field.is_required()


def unknown_key(place: KeyPath, value: object) -> str:
    """Returns the message of a key that is not allowed where it stands: what is, and what to do."""
    key, known = str(place[-1]), keys_at(place[:-1])
    hint = did_you_mean(key, known)
    instead = _instead(key, place[:-1], value)
    # A suite's own keys are so many that one of them may have the name of another block's key.
    if not instead or (hint.endswith("?") and len(place) == 1):
        return f"unknown key; {hint}"
    return f"unknown key; known: {', '.join(sorted(known))}; {instead}"


def _instead(key: str, place: KeyPath, value: object) -> str:
    """Returns where an unknown key of a block belongs; empty if nobody knows."""
    block = block_at(place)
    if block in (ArmsConfig, ArmConfig) and key in _PACKAGES:
        return _ENVIRONMENTS
    if homes := _homes(key):
        return f"`{key}` belongs {homes}"
    if did_you_mean(key, keys_at(place)).endswith("?"):
        return ""
    if block in (BenchmarkEntry, ArmConfig):
        return _OPTIONS
    is_tree = block is CheckpointConfig and isinstance(value, dict)
    return "an array belongs in `spec`" if is_tree else ""


def _homes(key: str) -> str:
    """Returns the blocks that have a key; empty if none has."""
    if key in keys_at(()):
        return "at the top of the suite"
    singular = {plural: name for name, plural in PLURALS.items()}
    found = [
        f"`{singular.get(name, name)}`"
        for name in Suite.model_fields
        if key in keys_at((name,)) or key in keys_at((name, 0))
    ]
    if key in ArmConfig.model_fields:
        found += [f"`arms.{arm}`" for arm in ARMS]
    some = ", ".join(found[:-1])
    return f"in {' or '.join(filter(None, [some, *found[-1:]]))}" if found else ""


def _inside(annotation: Any, part: str | int) -> Any:
    """Returns the type of what lies in a value of a type, None where it has no such part."""
    model = _model(annotation)
    if model is not None:
        field = model.model_fields.get(str(part))
        return None if field is None else field.annotation
    inner = typing.get_args(_bare(annotation))
    if typing.get_origin(_bare(annotation)) is tuple and isinstance(part, int):
        return inner[0]
    return inner[1] if typing.get_origin(_bare(annotation)) is dict else None


def _model(annotation: Any) -> type[ConfigModel] | None:
    bare = _bare(annotation)
    return bare if isinstance(bare, type) and issubclass(bare, ConfigModel) else None


def _bare(annotation: Any) -> Any:
    """Returns a type without what is said about it, and without null."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _bare(inner[0])
    if origin in (typing.Union, types.UnionType):
        return _bare(inner[0])
    return annotation
