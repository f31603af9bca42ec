"""Location of an existing checkpoint: its root, its item and its format."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from typing import Final, Literal

from orbax_bench_core.errors import UserError, listed
from orbax_bench_core.files import AnyPath, absolute, matching, opened, place, read_json
from orbax_bench_core.inventory.layout import ARRAY_FILES, ARRAY_METADATA

UNFINISHED: Final = ".orbax-checkpoint-tmp"
"""In the name of a directory that a save is still writing, or was when it ended."""
TREE: Final = "_METADATA"
"""File of Orbax that says which tree lies in its folder."""
MSGPACK_TREE: Final = "checkpoint"
"""File in which old releases of Orbax and Flax kept a tree, with the values or without them."""
ROOT_FILE: Final = "_CHECKPOINT_METADATA"
MARKER_FILE: Final = "commit_success.txt"
SAFETENSORS: Final = ".safetensors"
SAFETENSORS_INDEX: Final = ".safetensors.index.json"
"""End of the name of the file that says which file of a model holds which array."""

_LOOKED_AT: Final = 3
"""Folders of arrays that are looked into, to tell an item by them."""
_USUAL: Final = ("state", "pytree", "default", "items")
_STEP: Final = re.compile(r"(?:^|[^0-9])([0-9]+)$")
"""Name of the directory of a step, such as `100`, `step_00000100` or `checkpoint_100`."""
_TREE_HANDLERS: Final = ("PyTree", "Standard")
"""In the names of Orbax's classes that write trees."""
_DEPTH: Final = 3
_MOST_CHILDREN: Final = 1_000
"""Folders of a folder that are looked into for a checkpoint that a path may mean."""
_MSGPACK_MAPS: Final = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))
"""First bytes of a mapping in msgpack; TensorFlow's file of the same name begins with text."""


@dataclasses.dataclass(frozen=True, slots=True)
class Location:
    """An existing checkpoint: a tree of Orbax, or a model in the safetensors format."""

    root: AnyPath  # a file only where a single .safetensors file was named
    item: str | None = None  # the folder of the tree; None if the root itself holds it
    form: Literal["orbax", "safetensors"] = "orbax"

    @property
    def folder(self) -> AnyPath:
        """The directory that holds the tree."""
        return self.root / self.item if self.item else self.root


def locate(path: str) -> Location:
    """Finds the one checkpoint that a path names.

    The path may be the root of a checkpoint, the directory of one item, a directory of safetensors
    files, or one such file.

    Raises:
        UserError: There is none, or there are several, of which one has to be named.
    """
    directory = absolute(path)
    if not directory.exists():
        raise UserError(f"{path!r} does not exist; give the directory of a checkpoint")
    if not directory.is_dir():
        return _of_file(path, place(path).absolute())  # a link to it may have another name
    parent, name = directory.parent, directory.name
    is_part = not (directory / ROOT_FILE).exists() and (parent / ROOT_FILE).exists()
    if is_part and (name in handlers(parent) or is_item(directory)):
        return Location(parent, name)
    named = handlers(directory)
    if "" in named or (not named and is_item(directory)):
        return Location(directory)
    entries = sorted(directory.iterdir())
    children = [entry for entry in entries if entry.is_dir()]
    whole = is_root(directory) or UNFINISHED in directory.name
    if not whole and (steps := [child for child in children if _is_checkpoint(child)]):
        raise UserError(_choice_of_steps(path, steps))
    items = trees_of(directory)
    # One that is named and not there is found to be missing when the checkpoint is read.
    trees = [name for name, handler in named.items() if writes_a_tree(handler)]
    items, is_whole = items or trees, set(trees) <= set(items)
    if items:
        usual = [name for name in _USUAL if name in items]
        if len(items) > 1 and not usual and is_whole:
            example = str(directory / items[0])
            raise UserError(f"{path!r} holds the items {items}; give one, such as {example!r}")
        return Location(directory, (usual or items)[0])
    if any(matching(directory, f"*{SAFETENSORS}")) or index_file(directory) is not None:
        return Location(directory, form="safetensors")
    if whole:
        return Location(directory, children[0].name if children else next(iter(named), None))
    steps = [entry for entry in entries if _STEP.search(entry.name) and holds_msgpack(entry)]
    if steps:
        last = max(steps, key=_by_step)
        return _of_file(str(last), last)
    found = next(_checkpoints_below(directory, _DEPTH), None)
    if found is not None:
        raise UserError(
            f"{path!r} is not a checkpoint; there is one below it, such as {str(found)!r}"
        )
    raise UserError(
        f"{path!r} is not a checkpoint: neither it nor a directory in it has {TREE}, "
        f"manifest.ocdbt, Zarr arrays or {SAFETENSORS} files; give the root of a checkpoint or the "
        "directory of one item"
    )


def trees_of(root: AnyPath) -> list[str]:
    """Returns the items of a checkpoint that hold trees; if it names any, only of those."""
    named, folders = handlers(root), [child for child in sorted(root.iterdir()) if child.is_dir()]
    items = [child.name for child in folders if is_item(child) and UNFINISHED not in child.name]
    return [name for name in items if name in named] or items


def handlers(root: AnyPath) -> dict[str, str]:
    """Returns the items that a checkpoint names, each with the class that wrote it.

    The name of the one item of a class that wrote the root itself is empty.
    """
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return handlers_of(read_json(root / ROOT_FILE).get("item_handlers"))
    return {}


def handlers_of(found: object) -> dict[str, str]:
    """Returns the items that an entry `item_handlers` names, each with the class that wrote it."""
    found = {"": found} if isinstance(found, str) else found
    if not isinstance(found, dict):
        return {}
    return {str(name): str(handler).rpartition(".")[2] for name, handler in found.items()}


def writes_a_tree(handler: str) -> bool:
    """Says whether one of Orbax's classes writes a tree of arrays."""
    return any(name in handler for name in _TREE_HANDLERS)


def is_root(directory: AnyPath) -> bool:
    """Says whether Orbax has marked a directory as that of a checkpoint."""
    return any((directory / name).exists() for name in (ROOT_FILE, MARKER_FILE))


def is_item(directory: AnyPath) -> bool:
    """Says whether a folder holds the arrays of a tree, or what Orbax writes next to them."""
    names = (TREE, "manifest.ocdbt", "ocdbt.process_0", ARRAY_METADATA)
    if any((directory / name).exists() for name in names):
        return True
    if holds_msgpack(directory / MSGPACK_TREE):
        return True
    return any(
        (child / name).exists()
        for child in sorted(directory.iterdir())[:_LOOKED_AT]
        for name in ARRAY_FILES
        if not (directory / ROOT_FILE).exists()
    )


def holds_msgpack(file: AnyPath) -> bool:
    """Says whether a file holds a mapping in msgpack, judged by its first byte."""
    if not file.exists() or file.is_dir():
        return False
    with contextlib.suppress(OSError), opened(file) as stream:
        return bool(_MSGPACK_MAPS.intersection(stream.read(1)))
    return False


def index_file(directory: AnyPath) -> AnyPath | None:
    """Returns the file that says which file of a safetensors model holds which array."""
    return min(matching(directory, f"*{SAFETENSORS_INDEX}"), default=None)


def _of_file(path: str, file: AnyPath) -> Location:
    if file.name.endswith(SAFETENSORS_INDEX):
        return Location(file.parent, form="safetensors")
    if file.name.endswith(SAFETENSORS):
        return Location(file, form="safetensors")
    if holds_msgpack(file):
        raise UserError(
            f"{path!r} is a file of msgpack, as flax.training.checkpoints wrote them, which Orbax "
            f"does not read: {conversion(file, by_flax=True)}"
        )
    raise UserError(f"{path!r} is a file; give the directory of a checkpoint")


def conversion(path: AnyPath, *, by_flax: bool = False) -> str:
    """Says how to make a checkpoint that Orbax v1 reads from one that only older functions read."""
    old = str(path)
    read = (
        f"flax.training.checkpoints.restore_checkpoint({old!r}, None)"
        if by_flax
        else f"orbax.checkpoint.PyTreeCheckpointer().restore({old!r})"
    )
    return (
        f"convert it in Python, tree = {read}, then "
        f"orbax.checkpoint.PyTreeCheckpointer().save({old + '-converted'!r}, tree), and give that"
    )


def _is_checkpoint(directory: AnyPath) -> bool:
    if UNFINISHED in directory.name or (directory / ROOT_FILE).exists():
        return True
    if _STEP.search(directory.name) is None:
        return False
    children = sorted(directory.iterdir())[:_LOOKED_AT]
    return is_item(directory) or any(child.is_dir() and is_item(child) for child in children)


def _choice_of_steps(path: str, steps: list[AnyPath]) -> str:
    finished = [step for step in steps if UNFINISHED not in step.name]
    unfinished = [step.name for step in steps if UNFINISHED in step.name]
    more = f" and the unfinished {listed(unfinished, _LOOKED_AT)}" if unfinished else ""
    if not finished:
        return f"{path!r} holds no finished checkpoint, only {listed(unfinished, _LOOKED_AT)}"
    number = len(finished)
    return (
        f"{path!r} holds {number} checkpoint{'s' * (number > 1)}{more}; give one, such as "
        f"{str(max(finished, key=_by_step))!r}"
    )


def _by_step(directory: AnyPath) -> tuple[int, str]:
    found = _STEP.search(directory.name)
    return int(found[1]) if found else -1, directory.name


def _checkpoints_below(directory: AnyPath, depth: int) -> Iterator[AnyPath]:
    """Yields checkpoints in the directories below one, of each the last step first."""
    children = [child for child in sorted(directory.iterdir())[:_MOST_CHILDREN] if child.is_dir()]
    for child in sorted(children, key=_by_step, reverse=True):
        if UNFINISHED in child.name:
            continue
        if is_root(child) or _is_checkpoint(child) or is_item(child):
            yield child
        elif depth > 1:
            yield from _checkpoints_below(child, depth - 1)
