"""Digests of a tree's content: equal for equal values, dtypes and shapes, however laid out.

A digest is 128 bits over a header (dtype and shape) and two 32-bit sums of element hashes. It finds
corruption, swapped or lost shards and wrong dtypes; it is no defence against someone who chooses
values to collide. Floats are compared bit by bit: -0.0 differs from 0.0, and NaNs by payload.
"""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

from orbax_bench_core.interface import VerificationError
from orbax_bench_core.state import hashing, layout
from orbax_bench_core.state.tree import StateError, named_leaves

PyTree = Any

LaneSums = tuple[int, int]
Pending = Mapping[Any, jax.Array]
"""Sums that are still being computed, by the device whose shard they cover."""

_NARROW: dict[str, int] = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}


def add(sums: Iterable[LaneSums]) -> LaneSums:
    """Adds sums of disjoint parts of an array."""
    first, second = 0, 0
    for a, b in sums:
        first, second = (first + a) % 2**32, (second + b) % 2**32
    return first, second


def start_digest(array: jax.Array) -> Pending:
    """Starts summing the shards of an array that this process holds; returns at once."""
    array = _in_device_memory(array)
    with layout.wide(array.shape, array.dtype.name):
        if isinstance(array.sharding, NamedSharding):
            sums = _named_program(array.shape, array.sharding)(array)
            return {shard.device: shard.data for shard in sums.addressable_shards}
        if array.sharding.is_fully_replicated:
            whole = _whole_program(array.shape)
            return {
                shard.device: whole(shard.data)
                for shard in array.addressable_shards
                if shard.replica_id == 0
            }
        program = _block_program(array.shape)
        kind = np.uint64 if layout.needs_wide_index(array.shape) else np.uint32
        return {
            shard.device: program(
                shard.data, np.array([part.start or 0 for part in shard.index], kind)
            )
            for shard in array.addressable_shards
            if shard.replica_id == 0
        }


def finish(array: jax.Array, pending: Pending) -> LaneSums:
    """Waits for the sums of an array and adds those of the shards that are not replicas."""
    return add(
        _as_sums(pending[shard.device])
        for shard in array.addressable_shards
        if shard.replica_id == 0
    )


def host_sums(array: np.ndarray[Any, Any]) -> LaneSums:
    """Returns the sums of a NumPy array, equal to those of a `jax.Array` of the same content.

    Byte order and strides do not matter. Values count by their bits, so that a NaN equals the same
    NaN, and 0 does not equal -0.
    """
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    size = min(native.dtype.itemsize, 4)
    words = native.dtype.itemsize // size
    bits = native.reshape(-1).view(f"<u{size}").reshape(*array.shape, words)
    if native.dtype.name in _NARROW:
        bits = bits & (2 ** _NARROW[native.dtype.name] - 1)
    with layout.wide(array.shape, "uint32"):
        return _as_sums(_host_program(array.shape)(bits))


def _in_device_memory(array: jax.Array) -> jax.Array:
    """Brings arrays that live in pinned host memory to where programs can read them."""
    devices: Iterable[jax.Device] = array.sharding.addressable_devices
    kinds = {device.default_memory().kind for device in devices}
    if not kinds or array.sharding.memory_kind in {None, *kinds}:
        return array
    moved: jax.Array = jax.device_put(array, array.sharding.with_memory_kind(kinds.pop()))
    return moved


def _as_sums(lanes: jax.Array) -> LaneSums:
    first, second = np.asarray(lanes).reshape(2).tolist()
    return first, second


@functools.cache
def _named_program(
    shape: tuple[int, ...], sharding: NamedSharding
) -> Callable[[jax.Array], jax.Array]:
    """One program for all devices; it holds no collective, so none waits for another."""

    def body(block: jax.Array) -> jax.Array:
        return _sum(_words(block), block.shape, shape, layout.offsets(sharding, shape))

    every_axis = jax.sharding.PartitionSpec(sharding.mesh.axis_names)
    return layout.over_shards(body, sharding, inputs=sharding.spec, outputs=every_axis)


@functools.cache
def _block_program(shape: tuple[int, ...]) -> Callable[[jax.Array, Any], jax.Array]:
    def program(block: jax.Array, offsets: jax.Array) -> jax.Array:
        return _sum(_words(block), block.shape, shape, list(offsets))

    return layout.compiled(program)


@functools.cache
def _whole_program(shape: tuple[int, ...]) -> Callable[[jax.Array], jax.Array]:
    """Computes no positions but those of the loop."""

    def program(block: jax.Array) -> jax.Array:
        return _sum(_words(block), shape, shape, None)

    return layout.compiled(program)


@functools.cache
def _host_program(shape: tuple[int, ...]) -> Callable[[Any], jax.Array]:
    def program(bits: jax.Array) -> jax.Array:
        words = [bits[..., part].astype(jnp.uint32) for part in range(bits.shape[-1])]
        return _sum(words, shape, shape, None)

    return layout.compiled(program)


def _sum(
    words: Sequence[jax.Array],
    block_shape: Sequence[int],
    shape: Sequence[int],
    offsets: Sequence[jax.Array] | None,
) -> jax.Array:
    if _is_one_run(block_shape, shape):
        size = math.prod(shape[1:])
        words = [word.reshape(-1) for word in words]
        block_shape = (block_shape[0] * size,)
        offsets = None if offsets is None else [offsets[0] * size]
        shape = (shape[0] * size,)
    low, high = hashing.linear_index(block_shape, global_shape=shape, offsets=offsets)
    lanes = hashing.content_lanes(words, low, high)
    # One reduction of both lanes; XLA's CPU backend runs it ten times faster than two sums.
    sums = lax.reduce(
        lanes,
        (np.uint32(0), np.uint32(0)),
        lambda x, y: (x[0] + y[0], x[1] + y[1]),
        tuple(range(len(block_shape))),
    )
    return jnp.stack(sums)


def _is_one_run(block_shape: Sequence[int], shape: Sequence[int]) -> bool:
    """Says whether a block is to be taken as one run of elements: one loop is a tenth faster."""
    # It has to be a run of the array, and in memory as well, which it is on CPUs; devices that lay
    # arrays out in tiles would have to copy it.
    known = len(block_shape) > 1 and not layout.needs_wide_index(shape)
    return known and tuple(block_shape[1:]) == tuple(shape[1:]) and jax.default_backend() == "cpu"


def _words(block: jax.Array) -> list[jax.Array]:
    dtype = block.dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return [*_words(lax.real(block)), *_words(lax.imag(block))]
    if dtype == jnp.bool_:
        return [block.astype(jnp.uint32)]
    bits = jnp.iinfo(dtype).bits if jnp.issubdtype(dtype, jnp.integer) else jnp.finfo(dtype).bits
    code = lax.bitcast_convert_type(block, jnp.dtype(f"uint{bits}"))
    if bits <= 32:
        return [code.astype(jnp.uint32)]
    return [code.astype(jnp.uint32), (code >> 32).astype(jnp.uint32)]


@dataclasses.dataclass(frozen=True)
class LeafSums:
    """What one process knows about the content of one leaf."""

    kind: str  # dtype and shape of an array, or the type of a scalar
    lanes: LaneSums  # over the elements that this process holds, replicas of others' left out
    whole: bool  # whether these are all elements of the leaf


PartialDigest = Mapping[str, LeafSums]


class Digest(dict[str, str]):
    """One hexadecimal digest per leaf of a tree, keyed by its dotted path."""


def digest(tree: PyTree) -> Digest:
    """Returns one hexadecimal digest per leaf, keyed by its dotted path."""
    # In a multi-process run every process must call this with the same tree, and each gets the
    # digest of the whole: one exchange of eight bytes per distributed leaf adds up the parts.
    return combine(_all_parts(partial_digest(tree)))


def partial_digest(tree: PyTree) -> dict[str, LeafSums]:
    """Sums the parts of each leaf that this process holds, without any communication."""
    started = []
    for name, leaf in named_leaves(tree):
        kind, data = _kind(name, leaf), _key_data(leaf)
        pending = start_digest(data) if isinstance(data, jax.Array) else {}
        started.append((name, kind, data, pending))
    return {name: _finish(kind, data, pending) for name, kind, data, pending in started}


def combine(parts: Iterable[PartialDigest]) -> Digest:
    """Makes the digests of a tree from the parts of all processes.

    Raises:
        StateError: The trees of the processes differ in names, dtypes or shapes.
    """
    first, *others = parts
    for other in others:
        if {n: s.kind for n, s in first.items()} != {n: s.kind for n, s in other.items()}:
            raise StateError(
                "the processes hold different trees: the names, dtypes or shapes of the leaves "
                "differ; give every process the same tree"
            )
    return Digest(
        (
            name,
            _hex(
                mine.kind,
                mine.lanes
                if mine.whole
                else add([mine.lanes, *(other[name].lanes for other in others)]),
            ),
        )
        for name, mine in first.items()
    )


def check_digest(restored: PyTree, expected: PyTree) -> None:
    """Checks that two trees hold the same values, however laid out; every process must call.

    Args:
        restored: A tree, or its digest.
        expected: A tree, or its digest.

    Raises:
        VerificationError: They differ; the message names the first leaves that do.
    """
    wanted, found = (
        tree if isinstance(tree, Digest) else digest(tree) for tree in (expected, restored)
    )
    differences = compare(wanted, found)
    if differences:
        raise VerificationError(
            "restored values differ from what was expected: " + "; ".join(differences)
        )


def compare(expected: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """Lists the differences of two digests for people, in the order of the paths."""
    lines = []
    for name in sorted({*expected, *actual}):
        if name not in actual:
            lines.append(f"{name}: missing, expected digest {expected[name]}")
        elif name not in expected:
            lines.append(f"{name}: unexpected, has digest {actual[name]}")
        elif expected[name] != actual[name]:
            lines.append(f"{name}: different, expected {expected[name]}, got {actual[name]}")
    return lines


def _all_parts(mine: dict[str, LeafSums]) -> list[PartialDigest]:
    distributed = [name for name, sums in mine.items() if not sums.whole]
    if not distributed:
        return [mine]
    lanes = np.array([mine[name].lanes for name in distributed], np.uint32)
    everyone = np.asarray(multihost_utils.process_allgather(lanes))
    rows = [dict(zip(distributed, theirs.tolist(), strict=True)) for theirs in everyone]
    return [
        {
            name: dataclasses.replace(sums, lanes=tuple(row[name])) if name in row else sums
            for name, sums in mine.items()
        }
        for row in rows
    ]


def _key_data(leaf: Any) -> Any:
    """Replaces a typed random key by its words; everything else stays as it is."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf


def _kind(name: str, leaf: Any) -> str:
    if isinstance(leaf, jax.Array):
        if leaf.dtype.name in layout.NUMPY_ONLY:
            layout.check_dtype(name, leaf.dtype.name)
        return f"array {leaf.dtype.name} {list(leaf.shape)}"
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSUMm":
        return f"array {leaf.dtype.name} {list(leaf.shape)}"
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return f"python {type(leaf).__name__}"
    raise StateError(
        f"leaf {name!r} is {type(leaf).__name__}; arrays of numbers, numbers, booleans, strings "
        "and bytes have a digest; leave the leaf out"
    )


def _finish(kind: str, leaf: Any, pending: Pending) -> LeafSums:
    if isinstance(leaf, jax.Array):
        return LeafSums(kind, finish(leaf, pending), leaf.is_fully_addressable)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return LeafSums(kind, host_sums(np.asarray(leaf)), whole=True)
    words = np.frombuffer(hashlib.blake2b(repr(leaf).encode(), digest_size=8).digest(), "<u4")
    first, second = words.tolist()
    return LeafSums(kind, (first, second), whole=True)


def _hex(kind: str, lanes: LaneSums) -> str:
    text = f"{kind} {lanes[0]:08x}{lanes[1]:08x}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
