"""Digests of a tree's content: equal for equal values, dtypes and shapes, however laid out.

A digest is 128 bits over a header (dtype and shape) and two 32-bit sums of element hashes. It finds
corruption, swapped or lost shards and wrong dtypes; it is no defence against someone who chooses
values to collide. Floats are compared bit by bit: -0.0 differs from 0.0, and NaNs by payload.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.state import content, precision
from orbax_bench_core.state.content import LaneSums
from orbax_bench_core.state.errors import StateError
from orbax_bench_core.state.naming import named_leaves

PyTree = Any


@dataclasses.dataclass(frozen=True)
class LeafSums:
    """What one process knows about the content of one leaf.

    Attributes:
        kind: Dtype and shape of an array, or the type of a scalar.
        lanes: Sums over the elements that this process holds, replicas of others' left out.
        whole: Whether these are all elements of the leaf.
    """

    kind: str
    lanes: LaneSums
    whole: bool


PartialDigest = Mapping[str, LeafSums]


class Digest(dict[str, str]):
    """One hexadecimal digest per leaf of a tree, keyed by its dotted path."""


def digest(tree: PyTree) -> Digest:
    """Returns one hexadecimal digest per leaf, keyed by its dotted path.

    In a multi-process run every process must call this with the same tree, and each gets the
    digest of the whole: one exchange of eight bytes per distributed leaf adds up the parts.

    Args:
        tree: Arrays of JAX or NumPy, numbers, booleans, strings and bytes, in any pytree.

    Raises:
        StateError: A leaf is of another type, or two leaves have the same path.
    """
    return combine(_all_parts(partial_digest(tree)))


def partial_digest(tree: PyTree) -> dict[str, LeafSums]:
    """Sums the parts of each leaf that this process holds, without any communication.

    Args:
        tree: As for `digest`.

    Returns:
        Sums per leaf, for `combine`.

    Raises:
        StateError: As for `digest`.
    """
    started = []
    for name, leaf in named_leaves(tree):
        data = _key_data(leaf)
        started.append((name, _kind(name, leaf), data, _start(data)))
    return {name: _finish(kind, data, pending) for name, kind, data, pending in started}


def combine(parts: Iterable[PartialDigest]) -> Digest:
    """Makes the digests of a tree from the parts of all processes.

    Args:
        parts: The `partial_digest` of each process, in any order.

    Raises:
        StateError: The processes disagree on the leaves or on a dtype or shape.
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
                else content.add([mine.lanes, *(other[name].lanes for other in others)]),
            ),
        )
        for name, mine in first.items()
    )


def check(restored: PyTree, expected: PyTree) -> None:
    """Checks that two trees hold the same values, however laid out; every process must call.

    Args:
        restored: What was found: a tree, or its `Digest`.
        expected: What it should be: a tree, or its `Digest`.

    Raises:
        StateError: As for `digest`.
        VerificationError: They differ; the message says where.
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
    """Lists the differences of two digests for people, in the order of the paths.

    Args:
        expected: Digest of what was saved.
        actual: Digest of what was restored.

    Returns:
        One line per leaf that is missing, unexpected or different; none when all are equal.
    """
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
        if leaf.dtype.name in precision.NUMPY_ONLY:
            precision.check_dtype(name, leaf.dtype.name)
        return f"array {leaf.dtype.name} {list(leaf.shape)}"
    if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind not in "OSUMm":
        return f"array {leaf.dtype.name} {list(leaf.shape)}"
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return f"python {type(leaf).__name__}"
    raise StateError(
        f"leaf {name!r} is {type(leaf).__name__}; arrays of numbers, numbers, booleans, strings "
        "and bytes have a digest; leave the leaf out"
    )


def _start(leaf: Any) -> content.Pending:
    """Starts the sums of an array on devices, so that all leaves are computed at once."""
    return content.start(leaf) if isinstance(leaf, jax.Array) else {}


def _finish(kind: str, leaf: Any, pending: content.Pending) -> LeafSums:
    if isinstance(leaf, jax.Array):
        return LeafSums(kind, content.finish(leaf, pending), leaf.is_fully_addressable)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return LeafSums(kind, content.host_sums(np.asarray(leaf)), whole=True)
    words = np.frombuffer(hashlib.blake2b(repr(leaf).encode(), digest_size=8).digest(), "<u4")
    first, second = words.tolist()
    return LeafSums(kind, (first, second), whole=True)


def _hex(kind: str, lanes: LaneSums) -> str:
    text = f"{kind} {lanes[0]:08x}{lanes[1]:08x}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
