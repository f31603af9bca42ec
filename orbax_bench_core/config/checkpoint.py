"""The `checkpoint_config` block: a checkpoint by tree, path, model preset or Flax NNX factory."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel, explain
from orbax_bench_core.config.execution import MAX_SEED
from orbax_bench_core.errors import did_you_mean, shown
from orbax_bench_core.files import checked_path

BITS: Final[dict[str, int]] = {
    "bool": 8,
    "int2": 8,
    "int4": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint2": 8,
    "uint4": 8,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "float4_e2m1fn": 8,
    "float8_e3m4": 8,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "complex64": 64,
    "complex128": 128,
}
"""Bits that one element takes in host memory; sub-byte types take a byte each."""

ALIASES: Final = {
    "bool_": "bool",
    "int_": "int64",
    "uint": "uint64",
    "float_": "float64",
    "single": "float32",
    "double": "float64",
    "complex_": "complex128",
    "csingle": "complex64",
    "cdouble": "complex128",
}
"""Other names that `jax.numpy` has for some of them."""


def canonical(name: str) -> str | None:
    """Returns the canonical name of a dtype, or None when JAX has no such dtype."""
    name = ALIASES.get(name, name)
    return name if name in BITS else None


ShardingEntry = str | tuple[str, ...] | None
Optimizer = Literal["adamw", "sgd", "none"]
Layers = Literal["stacked", "unstacked"]

MODELS: Final = ("llama-8b", "llama-70b", "llama-405b", "mixtral-8x7b", "gpt2")
"""Names of the model presets; `config.models` has their trees."""

GROUPS: Final = ("params", "optimizer")
"""The groups of arrays of a preset whose dtype can be chosen."""

_SOURCES: Final = ("path", "spec", "model", "nnx")


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


def _later_key() -> Any:
    return pydantic.Field(default=None, exclude_if=lambda value: value is None)


def _group_dtypes(given: dict[str, str]) -> dict[str, str]:
    for group, name in given.items():
        if group not in GROUPS:
            raise ValueError(f"unknown group {group!r}; {did_you_mean(group, GROUPS)}")
        if canonical(name) is None:
            raise ValueError(f"unknown dtype {name!r}; {did_you_mean(name, BITS)}")
    return {group: str(canonical(name)) for group, name in given.items()}


class CheckpointConfig(ConfigModel):
    """A checkpoint to save and load, from one of four sources, or none.

    Attributes:
        spec: A tree of named leaves; each leaf is an array (`dtype`, `shape`, `sharding`) or one of
            the scalars `int` and `str`.
        path: An existing checkpoint to load.
        random_seed: Seed of the synthetic values.
        sharding_config_path: JSON file with a target sharding per leaf, for `path` only.
        load_with_colocated_python: On Pathways, whether `path` is loaded by the workers.
        model: Name of a preset, such as `llama-8b`, whose tree is generated.
        scale: Factor of the preset's widths, more than 0 and at most 1; 1 when absent.
        optimizer: Whose state the preset's checkpoint also holds; `none` when absent.
        dtypes: Dtypes of the preset's groups `params` and `optimizer`; float32 when absent.
        layers: Whether the preset has its layers in one array of each kind (`stacked`), or each on
            its own (`unstacked`), as MaxText has with `scan_layers`; as published when absent.
        nnx: A Flax NNX model, as `module:factory`; the factory takes `rngs` and returns it.
        name: What people call it; no part of its identity.
    """

    path: str | None = None
    spec: Any = None
    random_seed: Annotated[int, pydantic.Field(ge=0, le=MAX_SEED)] = 0
    sharding_config_path: str | None = None
    load_with_colocated_python: bool = False
    # A key that came later and is not given is left out of what is written: the ids of points that
    # were measured before it came stay what they were.
    model: str | None = _later_key()
    scale: Annotated[float, pydantic.Field(gt=0, le=1)] | None = _later_key()
    optimizer: Optimizer | None = _later_key()
    dtypes: Annotated[dict[str, str], pydantic.AfterValidator(_group_dtypes)] | None = _later_key()
    layers: Layers | None = _later_key()
    nnx: str | None = _later_key()
    name: Annotated[str, pydantic.Field(min_length=1)] | None = _later_key()

    @pydantic.field_validator("path", "sharding_config_path")
    @classmethod
    def _path_in_full(cls, path: str | None) -> str | None:
        return None if path is None else checked_path(path)

    @pydantic.field_validator("spec", mode="plain")
    @classmethod
    def _parse_spec(cls, value: Any) -> Spec | None:
        if value is None:
            return None
        spec, mistakes = readable_spec(value)
        if mistakes:
            raise SpecError(mistakes)
        return spec

    @pydantic.field_validator("model")
    @classmethod
    def _model_is_known(cls, name: str | None) -> str | None:
        if name is not None and name not in MODELS:
            raise ValueError(f"unknown model {name!r}; {did_you_mean(name, MODELS)}")
        return name

    @pydantic.field_validator("nnx")
    @classmethod
    def _factory_has_two_parts(cls, factory: str | None) -> str | None:
        if factory is not None and not re.fullmatch(r"[\w.]+:[\w.]+", factory):
            raise ValueError(
                f"expected module:factory, such as my_package.models:make, got {factory!r}"
            )
        return factory

    @pydantic.model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if given == ["path", "spec"]:
            raise ValueError("give either `path` (load) or `spec` (generate), not both")
        if len(given) > 1:
            listed = " and ".join(f"`{name}`" for name in given)
            raise ValueError(f"{listed} are two sources of one checkpoint; give one of them")
        if self.sharding_config_path is not None and self.path is None:
            raise ValueError("`sharding_config_path` needs `path`: it lays out a load")
        for key in ("scale", "optimizer", "dtypes", "layers"):
            if getattr(self, key) is not None and self.model is None:
                raise ValueError(f"`{key}` needs `model`, such as llama-8b: it shapes a preset")
        if self.layers == "stacked" and self.model == "gpt2":
            raise ValueError(
                "gpt2 has each layer on its own, as published; leave out `layers`, or take llama-8b"
            )
        return self

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to save: the benchmark makes its own state."""
        return all(getattr(self, name) is None for name in _SOURCES)

    @property
    def num_bytes(self) -> int | None:
        """Bytes of the arrays in `spec`; None when there is no spec."""
        if self.spec is None:
            return None
        return sum(leaf.num_bytes for _, leaf in leaves(self.spec) if isinstance(leaf, ArraySpec))

    @property
    def label(self) -> str:
        """A short name for people: its name, its first leaves, or the end of its path."""
        if self.name is not None:
            return self.name
        if self.model is not None:
            return self._model_label
        if self.nnx is not None:
            return self.nnx.partition(":")[2]
        if self.path is not None:
            return self.path.rstrip("/").rsplit("/", 1)[-1]
        names = list(self.spec or ())
        if not names:
            return "none"
        return names[0] if len(names) == 1 else f"{names[0]}+{len(names) - 1}"

    @property
    def _model_label(self) -> str:
        """All that tells a preset from another, such as `llama-8b@0.01+adamw`."""
        scale = "" if self.scale in (None, 1) else f"@{self.scale:g}"
        optimizer = "" if self.optimizer in (None, "none") else f"+{self.optimizer}"
        kinds = "".join(f"+{group}:{kind}" for group, kind in sorted((self.dtypes or {}).items()))
        layers = "" if self.layers is None else f"+{self.layers}"
        return f"{self.model}{scale}{optimizer}{kinds}{layers}"


def leaves(spec: Spec, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Yields every leaf of a spec with its path, in the order of the file."""
    for name, node in spec.items():
        if isinstance(node, Mapping):
            yield from leaves(node, (*prefix, name))
        else:
            yield (*prefix, name), node


def checked_name(name: str) -> str:
    """Returns the name of a leaf or group, which without OCDBT becomes the name of a folder."""
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
