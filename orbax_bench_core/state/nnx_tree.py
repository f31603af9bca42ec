"""Tree of a Flax NNX model as JSON; run as a process of its own, which prints it."""

from __future__ import annotations

import json
import sys
from typing import Any

from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.state.tree import StateError


def describe(factory: str) -> list[dict[str, Any]]:
    """Returns path, shape, dtype and partition of every array that a model's state has."""
    import jax

    from orbax_bench_core.state.nnx import abstract_state

    arrays, partitions = abstract_state(factory)
    found = jax.tree_util.tree_flatten_with_path(arrays)[0]
    specs = dict(_flat(partitions, ()))
    return [
        {
            "path": [entry.key for entry in path],
            "shape": list(leaf.shape),
            "dtype": leaf.dtype.name,
            "spec": list(specs.get(tuple(entry.key for entry in path)) or ()),
        }
        for path, leaf in found
    ]


def _flat(node: Any, path: tuple[str, ...]) -> Any:
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _flat(child, (*path, key))
    else:
        yield path, node


def main(factory: str) -> int:
    """Prints the tree as one line, or the reason why there is none."""
    try:
        found = describe(factory)
    except StateError as error:
        print(error, file=sys.stderr)
        return Exit.INVALID
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
