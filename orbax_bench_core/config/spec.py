"""Specs: trees of named arrays and scalars, as a suite file gives them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel, explain
from orbax_bench_core.config.dtypes import BITS, canonical
from orbax_bench_core.errors import did_you_mean, shown

ShardingEntry = str | tuple[str, ...] | None

_MAX_BYTES: Final = 2**59
"""XLA counts elements with their byte size in 63 bits, and aborts the process above."""
_MAX_RANK: Final = 32
"""Dimensions that TensorStore can address."""


class ArraySpec(ConfigModel):
    """One synthetic array.

    Attributes:
        dtype: A dtype of `jax.numpy`, for example `bfloat16`.
        shape: Global shape, in elements; `[]` is a scalar.
        sharding: One entry per dimension, as in `jax.sharding.PartitionSpec`: an axis name, a list
            of axis names, or null. Absent means replicated over the mesh.
        host: Whether it is a NumPy array, in memory that the host may change while a save in the
            background is under way, so that Orbax copies it before the save returns.
    """

    dtype: str
    shape: tuple[Annotated[int, pydantic.Field(ge=0, le=_MAX_BYTES)], ...] = pydantic.Field(
        strict=False, max_length=_MAX_RANK
    )
    sharding: tuple[ShardingEntry, ...] | None = pydantic.Field(default=None, strict=False)
    # Left out of what is written unless given: ids of points without it stay what they were.
    host: bool = pydantic.Field(default=False, exclude_if=lambda given: not given)

    @pydantic.field_validator("sharding", mode="before")
    @classmethod
    def _lists_are_tuples(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in value)

    @pydantic.field_validator("dtype")
    @classmethod
    def _dtype_is_known(cls, name: str) -> str:
        known = canonical(name)
        if known is None:
            raise ValueError(f"unknown dtype {name!r}; {did_you_mean(name, BITS)}")
        return known

    @pydantic.model_validator(mode="after")
    def _sharding_fits_rank(self) -> Self:
        if self.sharding is not None and len(self.sharding) > len(self.shape):
            raise ValueError(
                f"sharding has {len(self.sharding)} entries for {len(self.shape)} dimensions"
            )
        if self.host and self.sharding is not None:
            raise ValueError("an array with `host: true` is not sharded; leave out its sharding")
        # An empty dimension does not help: the others are multiplied without it.
        elements = math.prod(size or 1 for size in self.shape)
        if elements * max(8, BITS[self.dtype]) // 8 > _MAX_BYTES:
            raise ValueError("an array of more than 2^59 bytes, which XLA cannot address")
        return self

    @property
    def num_bytes(self) -> int:
        """Size of the whole array in host memory, in bytes."""
        return math.prod(self.shape) * BITS[self.dtype] // 8


Leaf = ArraySpec | Literal["int", "str"]
Spec = Mapping[str, "Leaf | Spec"]
Mistake = tuple[str, tuple[str | int, ...]]
"""What is wrong in a spec, and the path of the node."""


def leaves(spec: Spec, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yields every leaf of a spec with its path, in the order of the file."""
    for name, node in spec.items():
        if isinstance(node, Mapping):
            yield from leaves(node, (*prefix, name))
        else:
            yield (*prefix, name), node


def checked_name(name: str) -> str:
    """Returns the name of a leaf or group, which without OCDBT becomes the name of a folder.

    Raises:
        ValueError: It has a slash, a backslash or control characters, or is empty or dots alone.
    """
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise ValueError(
            f"{shown(name)} is not the name of an array: give one without / and \\ and control "
            "characters, and neither . nor .."
        )
    return name


class SpecError(ValueError):
    """A spec that cannot be read: what is wrong, each with the path of its node in the spec."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__(mistakes[0][0])
        self.mistakes = mistakes


def readable_spec(value: object) -> tuple[Spec, list[Mistake]]:
    """Returns the readable part of a spec, and the mistakes in the rest."""
    mistakes: list[Mistake] = []
    return _parse_tree(value, (), mistakes), mistakes


def _parse_tree(value: object, where: tuple[str, ...], mistakes: list[Mistake]) -> Spec:
    if not isinstance(value, Mapping):
        said = f"a spec is a mapping of names to leaves, got {shown(value)}"
        mistakes.append((said, where))
        return {}
    found: dict[str, Leaf | Spec] = {}
    for name, node in ((str(name), node) for name, node in value.items()):
        try:
            checked_name(name)
        except ValueError as error:
            mistakes.append((str(error), (*where, name)))
            continue
        read = _parse_node(node, (*where, name), mistakes)
        if read is not None:
            found[name] = read
    return found


def _parse_node(
    node: object, where: tuple[str, ...], mistakes: list[Mistake]
) -> Leaf | Spec | None:
    if node == "int" or node == "str":
        return "int" if node == "int" else "str"
    if isinstance(node, ArraySpec):
        return node
    if not isinstance(node, Mapping):
        said = f"a leaf is `int`, `str` or a mapping with `dtype` and `shape`, got {shown(node)}"
        mistakes.append((said, where))
        return None
    # A tree may have a branch of either name.
    if not any(key in node and not isinstance(node[key], Mapping) for key in ("dtype", "shape")):
        return _parse_tree(node, where, mistakes)
    try:
        return ArraySpec.model_validate(dict(node))
    except pydantic.ValidationError as error:
        mistakes += [
            (explain(each, ArraySpec.model_fields), (*where, *each["loc"]))
            for each in error.errors()
        ]
        return None
