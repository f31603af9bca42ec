"""Location of a checkpoint: its root, and the item that holds the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import absolute
from orbax_bench_core.inventory.layout import ARRAY_FILES, ARRAY_METADATA, TREE, UNFINISHED

if TYPE_CHECKING:
    from etils import epath


ROOT_FILE: Final = "_CHECKPOINT_METADATA"
MARKER_FILE: Final = "commit_success.txt"
_LOOKED_AT: Final = 3
"""Folders of arrays that are looked into, to tell an item by them."""
_USUAL: Final = ("state", "pytree", "default", "items")


def locate(path: str) -> tuple[epath.Path, str]:
    """Returns the root of a checkpoint and the name of its item, empty where the root is one."""
    directory = absolute(path)
    if not directory.exists():
        raise UserError(f"{path!r} does not exist; give the directory of an Orbax checkpoint")
    if not directory.is_dir():
        raise UserError(f"{path!r} is a file; give the directory of an Orbax checkpoint")
    children = sorted(child for child in directory.iterdir() if child.is_dir())
    if is_item(directory):
        is_below = (directory.parent / ROOT_FILE).exists()
        return (directory.parent, directory.name) if is_below else (directory, "")
    items = [child.name for child in children if is_item(child)]
    if items:
        usual = [name for name in _USUAL if name in items]
        if len(items) > 1 and not usual:
            example = str(directory / items[0])
            raise UserError(f"{path!r} holds the items {items}; give one, such as {example!r}")
        return directory, (usual or items)[0]
    steps = [
        child for child in children if (child / ROOT_FILE).exists() or UNFINISHED in child.name
    ]
    if steps:
        number = len(steps)
        raise UserError(
            f"{path!r} holds {number} checkpoint{'s' * (number > 1)}; give one, such as "
            f"{str(max(steps, key=_by_step))!r}"
        )
    if (directory / ROOT_FILE).exists() or (directory / MARKER_FILE).exists():
        return directory, children[0].name if children else _USUAL[0]
    raise UserError(
        f"{path!r} is not an Orbax checkpoint: neither it nor a directory in it has {TREE}, "
        "manifest.ocdbt or Zarr arrays; give the root of a checkpoint or the directory of one item"
    )


def is_item(directory: epath.Path) -> bool:
    """Returns whether a folder holds the arrays of a tree, or what Orbax writes beside them."""
    names = (TREE, "manifest.ocdbt", "ocdbt.process_0", ARRAY_METADATA)
    if any((directory / name).exists() for name in names):
        return True
    return any(
        (child / name).exists()
        for child in sorted(directory.iterdir())[:_LOOKED_AT]
        for name in ARRAY_FILES
        if not (directory / ROOT_FILE).exists()
    )


def _by_step(directory: epath.Path) -> tuple[int, str]:
    name = directory.name
    return int(name) if name.isdecimal() else -1, name
