"""Parameter count of an `nnx.Linear`, and the even share of each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, SupportsInt

from orbax_bench_core.errors import Problem, UserError

if TYPE_CHECKING:
    import jax
    import numpy as np

_LIMIT: Final = 2**63
"""Seeds and sizes of JAX are signed 64-bit integers."""


def orbax_save_count(
    seed: SupportsInt,
    x: jax.Array | np.ndarray | jax.ShapeDtypeStruct,
    features: SupportsInt,
    num_shards: SupportsInt,
) -> jax.Array:
    """Counts the parameters of a dense layer, and how many of them an even share holds.

    A kernel of shape (in_dim, features) and a bias of shape (features,) have
    (in_dim + 1) * features parameters. The formula is that of the exercise "NNX Orbax Sharded
    Save"; the layer counted here is `flax.nnx.Linear` itself, built by its shapes alone, so that a
    layer of any size takes no memory.

    The share is `total / num_shards` also where no axis of an array divides by `num_shards`. JAX
    can only replicate such an array then, and a device holds more than the share, up to the total.

    Under `jax.jit`, `seed`, `features` and `num_shards` must be static; `x` may be traced.

    >>> import numpy as np
    >>> from orbax_bench_core.plan import orbax_save_count
    >>> total, per_shard = orbax_save_count(0.0, np.ones((4, 8)), features=16.0, num_shards=4.0)
    >>> float(total), float(per_shard)
    (144.0, 36.0)

    Args:
        seed: Seed of the layer's initial values, truncated to an integer. No count depends on it.
        x: Inputs of the layer, rows by in_dim. Only the last dimension is read.
        features: Outputs of the layer, truncated to an integer: 4.9 acts as 4.
        num_shards: Shards that the parameters are spread over, truncated to an integer.

    Returns:
        `[total, per_shard]` as float32 of shape (2,). Both are numbers of parameters, not bytes.
        float32 holds every integer up to 2**24 exactly, and larger ones to 6e-8 of their value.

    Raises:
        UserError: `features` or `num_shards` is below 1 after truncation; one of the three numbers
            is not finite, not within 64 bits or traced; `x` has no last dimension, or an empty one;
            or flax is not installed. One error names everything that is wrong with the arguments.
    """
    problems: list[Problem] = []
    whole_seed = _whole("seed", seed, problems)
    in_dim = _in_dim(x, problems)
    outputs = _whole("features", features, problems, least=1)
    shards = _whole("num_shards", num_shards, problems, least=1)
    if problems:
        raise UserError(*problems)

    try:
        import flax.nnx as nnx
    except ImportError as error:
        raise UserError(
            f"orbax_save_count needs flax: pip install 'orbax-bench[flax]' ({error})"
        ) from None
    import jax
    import jax.numpy as jnp

    model = nnx.eval_shape(lambda: nnx.Linear(in_dim, outputs, rngs=nnx.Rngs(whole_seed)))
    total = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))
    return jnp.asarray([float(total), total / shards], dtype=jnp.float32)


def _whole(name: str, value: SupportsInt, problems: list[Problem], *, least: int = -_LIMIT) -> int:
    """Truncates a number to an integer, and notes what is wrong with it."""
    import jax

    try:
        whole = int(value)
    except jax.errors.ConcretizationTypeError:
        advice = f"make it static, as static_argnames of jax.jit does: got {value}"
        problems.append(Problem(advice, key=name))
    except (TypeError, ValueError, OverflowError):
        problems.append(Problem(f"must be a finite number, got {value!r}", key=name))
    else:
        if least <= whole < _LIMIT:
            return whole
        allowed = f"at least {least}" if whole < least else f"less than {_LIMIT}"
        advice = f"must be {allowed} after truncation to an integer, got {value!r}"
        problems.append(Problem(advice, key=name))
    return least


def _in_dim(x: object, problems: list[Problem]) -> int:
    """Returns the last dimension of `x`, and notes if there is none or if it is empty."""
    shape = getattr(x, "shape", None)
    if not shape:
        found = type(x).__name__ if shape is None else f"shape {shape}"
        advice = f"must be an array of shape (rows, in_dim), got {found}"
        problems.append(Problem(advice, key="x"))
        return 0
    if shape[-1] < 1:
        problems.append(Problem(f"its last dimension is empty: got shape {shape}", key="x"))
    return int(shape[-1])
