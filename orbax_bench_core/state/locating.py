"""Which checkpoint a path means: a root, or the directory of one item inside it."""

from __future__ import annotations

import dataclasses
from typing import Final

from etils import epath

from orbax_bench_core.state.errors import StateError

TREE_MARK: Final = "_METADATA"
"""File that Orbax writes beside the arrays of a pytree."""

ROOT_MARK: Final = "_CHECKPOINT_METADATA"
"""File that Orbax writes into the root of a checkpoint."""

_UNFINISHED: Final = ".orbax-checkpoint-tmp"
"""How Orbax marks a directory that a save is still writing, or was when it ended."""

_USUAL_NAMES: Final = ("state", "pytree", "default", "items")


@dataclasses.dataclass(frozen=True)
class Location:
    """A pytree in storage, as Orbax's v1 functions want it.

    Attributes:
        root: Directory to open.
        item: Name of the item under it; None when the root itself holds the arrays.
    """

    root: epath.Path
    item: str | None


def absolute(path: str) -> epath.Path:
    """Makes a local path absolute, which Orbax requires; addresses stay as they are.

    Args:
        path: Local path or object-store address.
    """
    return epath.Path(path) if "://" in path else epath.Path(path).expanduser().resolve()


def locate(path: str) -> Location:
    """Finds the pytree that a path names.

    Args:
        path: Root of a checkpoint (v0 or v1), or the directory of one of its items.

    Raises:
        StateError: There is no checkpoint at the path, or there are several to choose from.
    """
    directory = absolute(path)
    if not directory.exists():
        raise StateError(f"checkpoint path {path!r} does not exist; give an Orbax checkpoint")
    if not directory.is_dir():
        raise StateError(f"checkpoint path {path!r} is a file; give the checkpoint's directory")
    if _UNFINISHED in str(directory):
        raise StateError(
            f"checkpoint path {path!r} is of a save that has not finished; give one that has"
        )
    if (directory / TREE_MARK).exists():
        if (directory.parent / ROOT_MARK).exists():
            return Location(directory.parent, directory.name)
        return Location(directory, None)
    children = sorted(child for child in directory.iterdir() if child.is_dir())
    items = [child.name for child in children if (child / TREE_MARK).exists()]
    usual = [name for name in _USUAL_NAMES if name in items] or items
    if usual and (len(items) == 1 or usual is not items):
        return Location(directory, usual[0])
    if items:
        raise StateError(
            f"checkpoint path {path!r} holds the items {items}; give the path of one, for example "
            f"{str(directory / items[0])!r}"
        )
    steps = sorted((child for child in children if (child / ROOT_MARK).exists()), key=_by_step)
    if steps:
        raise StateError(
            f"path {path!r} holds {len(steps)} checkpoint{'s' * (len(steps) > 1)}; give the path "
            f"of one, for example {str(steps[-1])!r}"
        )
    if any(directory.glob("*.safetensors")):
        raise StateError(
            f"path {path!r} is not an Orbax checkpoint: it holds safetensors files, which the "
            "benchmark safetensors_load loads"
        )
    raise StateError(
        f"path {path!r} is not an Orbax checkpoint: there is no {TREE_MARK} in it or one level "
        "below; give the root of a checkpoint or the directory of one item"
    )


def _by_step(directory: epath.Path) -> tuple[int, str]:
    """Sorts step 10 behind step 9."""
    name = str(directory.name)
    return int(name) if name.isdecimal() else -1, name
