"""Blocks of a suite: the keys that are allowed at each place, and the places of each key."""

from __future__ import annotations

import types
import typing
from typing import Any, Final

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.override import PLURALS
from orbax_bench_core.config.source import KeyPath
from orbax_bench_core.config.suite import ARMS, ArmConfig, ArmsConfig, BenchmarkEntry, Suite
from orbax_bench_core.errors import did_you_mean

_OPTIONS: Final = "an option of the benchmark belongs in `options`"
_ENVIRONMENTS: Final = (
    "packages are the `requirements` of an item of `environments`, which an arm names as its "
    "`environment`"
)
_PACKAGES: Final = ("with", "packages", "requirements", "versions", "version")
"""Keys of those who mean the packages of an arm; commands that make arms have `--with`."""


def block_at(place: KeyPath) -> type[ConfigModel] | None:
    """Returns the model of the block at a place of the suite; None where there is no block."""
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
    """Returns where an unknown key of a block belongs; empty where nobody knows."""
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
    """Returns the blocks that have a key; empty where none has."""
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
