"""The `checkpoint_config` block: what is saved and loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pydantic

from orbax_bench_core.config import dtypes
from orbax_bench_core.config.errors import did_you_mean
from orbax_bench_core.config.explain import explain
from orbax_bench_core.config.model import ConfigModel
from orbax_bench_core.config.paths import checked_path

ShardingEntry = str | tuple[str, ...] | None


class ArraySpec(ConfigModel):
    """One synthetic array.

    Attributes:
        dtype: A dtype of `jax.numpy`, for example `bfloat16`.
        shape: Global shape, in elements; `[]` is a scalar.
        sharding: One entry per dimension, as in `jax.sharding.PartitionSpec`: an axis name, a list
            of axis names, or null. Absent means replicated over the mesh.
    """

    dtype: str
    shape: tuple[pydantic.NonNegativeInt, ...] = pydantic.Field(strict=False)
    sharding: tuple[ShardingEntry, ...] | None = pydantic.Field(default=None, strict=False)

    @pydantic.field_validator("sharding", mode="before")
    @classmethod
    def _lists_are_tuples(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in value)

    @pydantic.field_validator("dtype")
    @classmethod
    def _dtype_is_known(cls, name: str) -> str:
        known = dtypes.canonical(name)
        if known is None:
            raise ValueError(f"unknown dtype {name!r}; {did_you_mean(name, dtypes.BITS)}")
        return known

    @pydantic.model_validator(mode="after")
    def _sharding_fits_rank(self) -> ArraySpec:
        if self.sharding is not None and len(self.sharding) > len(self.shape):
            raise ValueError(
                f"sharding has {len(self.sharding)} entries for {len(self.shape)} dimensions"
            )
        return self

    @property
    def num_bytes(self) -> int:
        """Size of the whole array in host memory, in bytes."""
        return math.prod(self.shape) * dtypes.BITS[self.dtype] // 8


Leaf = ArraySpec | Literal["int", "str"]
Spec = Mapping[str, "Leaf | Spec"]


class CheckpointConfig(ConfigModel):
    """A checkpoint to save and load: generated from `spec`, or loaded from `path`.

    Attributes:
        spec: A tree of named leaves; each leaf is an array (`dtype`, `shape`, `sharding`) or one of
            the scalars `int` and `str`. None when the benchmark makes its own state.
        path: An existing checkpoint to load.
        random_seed: Seed of the synthetic values.
        sharding_config_path: JSON file with a target sharding per leaf, for `path` only.
        load_with_colocated_python: On Pathways, whether `path` is loaded by the workers.
    """

    path: str | None = None
    spec: Any = None
    random_seed: pydantic.NonNegativeInt = 0
    sharding_config_path: str | None = None
    load_with_colocated_python: bool = False

    @pydantic.field_validator("path", "sharding_config_path")
    @classmethod
    def _path_in_full(cls, path: str | None) -> str | None:
        return None if path is None else checked_path(path)

    @pydantic.field_validator("spec", mode="plain")
    @classmethod
    def _parse_spec(cls, value: Any) -> Spec | None:
        return None if value is None else _parse_tree(value, ())

    @pydantic.model_validator(mode="after")
    def _one_source(self) -> CheckpointConfig:
        if self.path is not None and self.spec is not None:
            raise ValueError("give either `path` (load) or `spec` (generate), not both")
        if self.sharding_config_path is not None and self.path is None:
            raise ValueError("`sharding_config_path` needs `path`: it says how to lay out a load")
        return self

    @property
    def num_bytes(self) -> int | None:
        """Bytes of the arrays in `spec`; None when there is no spec."""
        if self.spec is None:
            return None
        return sum(leaf.num_bytes for _, leaf in leaves(self.spec) if isinstance(leaf, ArraySpec))

    @property
    def label(self) -> str:
        """A short name for people: the names of the first leaves, or the end of the path."""
        if self.path is not None:
            return self.path.rstrip("/").rsplit("/", 1)[-1]
        names = list(self.spec or ())
        if not names:
            return "none"
        return names[0] if len(names) == 1 else f"{names[0]}+{len(names) - 1}"


def leaves(spec: Spec, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yields every leaf of a spec with its path, in the order of the file."""
    for name, node in spec.items():
        if isinstance(node, Mapping):
            yield from leaves(node, (*prefix, name))
        else:
            yield (*prefix, name), node


class SpecError(ValueError):
    """A spec that cannot be read; `where` is the path of the node inside the spec."""

    def __init__(self, message: str, where: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.where = where


def _parse_tree(value: object, where: tuple[str, ...]) -> Spec:
    if not isinstance(value, Mapping):
        raise SpecError(f"a spec is a mapping of names to leaves, got {value!r}", where)
    return {str(name): _parse_node(node, (*where, str(name))) for name, node in value.items()}


def _parse_node(node: object, where: tuple[str, ...]) -> Leaf | Spec:
    if node == "int" or node == "str":
        return "int" if node == "int" else "str"
    if isinstance(node, ArraySpec):
        return node
    if not isinstance(node, Mapping):
        raise SpecError(
            f"a leaf is `int`, `str` or a mapping with `dtype` and `shape`, got {node!r}", where
        )
    if not _looks_like_array(node):
        return _parse_tree(node, where)
    try:
        return ArraySpec.model_validate(dict(node))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise SpecError(explain(first, ArraySpec.model_fields), (*where, *first["loc"])) from None


def _looks_like_array(node: Mapping[Any, Any]) -> bool:
    return any(key in node and not isinstance(node[key], Mapping) for key in ("dtype", "shape"))
