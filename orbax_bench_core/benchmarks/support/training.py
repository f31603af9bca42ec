"""Training loop that a save can disturb: steps that update a checkpoint's arrays in place."""

import functools
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding

from orbax_bench_core.interface import UnmetNeed

PyTree = Any
_Arrays = list[jax.Array]


class Training:
    """A jitted train step over a copy of a checkpoint's arrays.

    In each step every device multiplies matrices, all of them reduce a loss, and every array is
    updated in the buffer that it lies in, which is donated: a save that still reads that buffer
    stores values that are too new.

    Several host processes train in lockstep: every process must call the same methods.
    """

    def __init__(self, tree: PyTree, *, matrix_size: int) -> None:
        """Compiles the step; the state is that of `restart`.

        Args:
            tree: The checkpoint; its leaves other than arrays of numbers are not trained.
            matrix_size: Rows and columns of the matrices that each device multiplies in a step.

        Raises:
            UnmetNeed: It has no array of numbers.
        """
        self._leaves, self._structure = jax.tree.flatten(tree)
        self._trained = [i for i, leaf in enumerate(self._leaves) if _is_trained(leaf)]
        originals = self._originals()
        if not originals:
            raise UnmetNeed(
                "there is nothing to train: the checkpoint has no array of numbers; add one to "
                "checkpoint_config"
            )
        shardings = tuple(array.sharding for array in originals)
        self._copy, self._step = _programs(shardings)
        mesh = _mesh(shardings)
        split = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self._matrices = _matrices(matrix_size, split)
        self._flags = {value: _flag(value, split) for value in (True, False)}
        self._arrays: _Arrays = []
        self.restart()

    @property
    def state(self) -> PyTree:
        """The tree with the arrays as they are now; the next step takes their buffers."""
        leaves = list(self._leaves)
        for index, array in zip(self._trained, self._arrays, strict=True):
            leaves[index] = array
        return jax.tree.unflatten(self._structure, leaves)

    def restart(self) -> None:
        """Sets the state back to the values of the tree, in fresh buffers, which are ready."""
        self._arrays = []  # freed before the new ones are made
        self._arrays = jax.block_until_ready(self._copy(self._originals()))

    def steps(self, count: int) -> list[float]:
        """Takes `count` steps; returns the seconds that each took until its outputs were ready."""
        return [self._timed_step(True)[0] for _ in range(count)]

    def steps_while(self, going: Callable[[], bool], *, most: int) -> list[float]:
        """Takes steps as long as something goes on.

        Args:
            going: Says whether this process is still to train; asked before each step.
            most: Steps after which it ends anyway.

        Returns:
            Seconds of each step that began while this process was to train.
        """
        # Processes need not see it end at the same step: they train on until it ended for all.
        times: list[float] = []
        for _ in range(most):
            goes_on = going()
            if not goes_on and jax.process_count() == 1:
                break
            seconds, goes_on_somewhere = self._timed_step(goes_on)
            if goes_on:
                times.append(seconds)
            if not goes_on_somewhere:
                break
        return times

    def _originals(self) -> _Arrays:
        return [self._leaves[index] for index in self._trained]

    def _timed_step(self, flag: bool) -> tuple[float, bool]:
        """Takes one step; returns its seconds, and whether any process called with True."""
        started = perf_counter()
        done = self._step(self._arrays, *self._matrices, self._flags[flag])
        self._arrays, _, anywhere = jax.block_until_ready(done)
        return perf_counter() - started, bool(anywhere)


def _is_trained(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and (
        jnp.issubdtype(leaf.dtype, jnp.number) or leaf.dtype == jnp.bool_
    )


@functools.cache
def _programs(shardings: tuple[Sharding, ...]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns how to copy arrays of these shardings, and the step; compiled for all repeats."""
    kept = list(shardings)

    def step(
        arrays: _Arrays, inputs: jax.Array, weights: jax.Array, flag: jax.Array
    ) -> tuple[_Arrays, jax.Array, jax.Array]:
        loss = jnp.mean(jnp.tanh(inputs @ weights))
        # The flag is reduced in the step itself, so that the processes agree without another one.
        return [_updated(array) for array in arrays], loss, jnp.any(flag)

    copy = jax.jit(lambda arrays: [jnp.copy(array) for array in arrays], out_shardings=kept)
    return copy, jax.jit(step, donate_argnums=0, out_shardings=(kept, None, None))


def _updated(array: jax.Array) -> jax.Array:
    """Returns other values of the same dtype; numbers do not come back to the old ones soon."""
    if array.dtype == jnp.bool_:
        return ~array
    return array + jnp.ones((), array.dtype)


def _mesh(shardings: tuple[Sharding, ...]) -> Mesh:
    """Returns the devices that hold the arrays, in the order that a program over them needs."""
    for sharding in shardings:
        if isinstance(sharding, NamedSharding):
            assert isinstance(sharding.mesh, Mesh)
            return sharding.mesh
    return Mesh(np.array(list(shardings[0].device_set)), ("device",))


def _matrices(size: int, split: NamedSharding) -> tuple[jax.Array, jax.Array]:
    """Makes inputs, a square block per device, and weights that all devices hold."""
    whole = NamedSharding(split.mesh, PartitionSpec())
    return _maker(split.mesh.size * size, size, split)(), _maker(size, size, whole)()


# The program is kept for later repeats, and not the matrices: these would take memory from all
# that runs in this process later.
@functools.cache
def _maker(rows: int, columns: int, sharding: NamedSharding) -> Callable[[], jax.Array]:
    scale = columns**-0.5  # keeps the products where tanh is not flat

    def make() -> Any:
        return scale * jax.random.normal(jax.random.key(rows), (rows, columns), jnp.float32)

    return jax.jit(make, out_shardings=sharding)


def _flag(value: bool, split: NamedSharding) -> jax.Array:
    """Makes one boolean per device; each process sets those of its own devices."""
    flags: jax.Array = jax.make_array_from_callback(
        (split.mesh.size,), split, lambda _: np.full(1, value)
    )
    return flags
