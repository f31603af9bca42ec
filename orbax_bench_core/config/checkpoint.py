"""The `checkpoint_config` block: a checkpoint by tree, path, model preset or Flax NNX factory."""

import re
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.dtypes import BITS, canonical
from orbax_bench_core.config.execution import MAX_SEED
from orbax_bench_core.config.spec import ArraySpec, Spec, SpecError, leaves, readable_spec
from orbax_bench_core.errors import did_you_mean
from orbax_bench_core.files import checked_path

Optimizer = Literal["adamw", "sgd", "none"]
Layers = Literal["stacked", "unstacked"]

MODELS: Final = ("llama-8b", "llama-70b", "llama-405b", "mixtral-8x7b", "gpt2")
"""Names of the model presets; `config.published_models` has their trees."""

GROUPS: Final = ("params", "optimizer")
"""The groups of arrays of a preset whose dtype can be chosen."""

_SOURCES: Final = ("path", "spec", "model", "nnx")


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
