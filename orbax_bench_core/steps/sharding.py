"""Sharding step: the sharding file for an existing checkpoint, from its metadata alone.

`python -m orbax_bench_core.steps.sharding CHECKPOINT fsdp=8` prints it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import absolute, matching
from orbax_bench_core.plan import read_mesh
from orbax_bench_core.state import StateError, describe, described_arrays, locate

_LAST: Final = frozenset(
    {"tensor", "tensor_transpose", "tensor_sequence", "tp", "mp", "model", "autoregressive"}
)
"""Mesh axes that shard the last dimension of an array."""

_NONE: Final = frozenset({"data", "dp", "replica", "replicas", "batch", "dcn", "slice"})
"""Mesh axes over which arrays are replicated; any other axis shards the first dimension."""


def plan_shardings(arrays: Mapping[str, tuple[Sequence[int], str]], mesh: Mapping[str, int]) -> Any:
    """Returns the content of a sharding file."""
    # Arrays of one dimension, and axes that do not divide their dimension evenly, are replicated.
    # On a mesh of one axis this is what Orbax's own tool does, with its strategy `fsdp` for an axis
    # `fsdp`, and `tp_inner` for `tp`.
    described = {"shape": list(mesh.values()), "axes": list(mesh)}
    return {
        name: {
            "shape": list(shape),
            "dtype": dtype,
            "sharding": {"mesh": described, "spec": _partition(shape, mesh)},
        }
        for name, (shape, dtype) in arrays.items()
    }


def arrays_in(path: str) -> Mapping[str, tuple[Sequence[int], str]]:
    """Returns shape and dtype of every array of a checkpoint, by dotted path."""
    from orbax_bench_core.benchmarks.support.safetensors import SUFFIX, read_arrays

    folder = absolute(path)
    if folder.is_dir() and any(matching(folder, f"*{SUFFIX}")):
        try:
            return read_arrays(folder)
        except ValueError as error:
            raise StateError(str(error)) from error
    described = describe(path, locate(path))
    return {
        name: (tuple(leaf.shape), str(leaf.dtype))
        for name, leaf in described_arrays(described).items()
    }


def main(arguments: Sequence[str]) -> int:
    """Prints the sharding file for a checkpoint (first argument) and a mesh (second)."""
    path, text = arguments
    try:
        mesh = read_mesh(text, 1)
        content = plan_shardings(arrays_in(path), dict(zip(mesh.axes, mesh.sizes, strict=True)))
    except (StateError, UserError) as error:
        print(error, file=sys.stderr)
        return Exit.INVALID
    # A line for each array, so that people can read the file and compare two.
    entries = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in content.items())
    print("{\n" + ",\n".join(entries) + "\n}")
    return 0


def _partition(shape: Sequence[int], mesh: Mapping[str, int]) -> list[Any]:
    taken: list[list[str]] = [[] for _ in shape]
    if len(shape) > 1:
        rest = list(shape)
        for axis, size in mesh.items():
            dimension = -1 if axis in _LAST else 0
            if axis not in _NONE and size > 0 and rest[dimension] % size == 0:
                rest[dimension] //= size
                taken[dimension].append(axis)
    return [axes[0] if len(axes) == 1 else axes or None for axes in taken]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
