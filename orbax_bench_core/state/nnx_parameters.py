"""Parameter count of a Flax NNX model; run as a process of its own, which prints it."""

from __future__ import annotations

import math
import sys
from typing import Any


def count(factory: str) -> int:
    """Returns the elements of all `nnx.Param` of the model that a factory makes."""
    import jax
    from flax import nnx

    from orbax_bench_core.state.nnx import load_object

    def make() -> Any:
        with nnx.use_eager_sharding(False):  # type: ignore[no-untyped-call]
            return load_object(factory)(nnx.Rngs(0))

    found = nnx.to_pure_dict(nnx.state(nnx.eval_shape(make), nnx.Param))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(found))


if __name__ == "__main__":
    print(count(sys.argv[1]))
