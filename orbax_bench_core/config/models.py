"""Model presets: trees of real models' checkpoints, by name and scale.

A preset becomes an ordinary spec, so that whatever reads specs (sharding checks, sizes, digests,
the generator) needs to know nothing of models.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Union

from orbax_bench_core.config.checkpoint import (
    ArraySpec,
    CheckpointConfig,
    Layers,
    Optimizer,
    ShardingEntry,
    Spec,
)
from orbax_bench_core.config.mesh import MeshConfig

MeshAxes = tuple[tuple[str, int], ...]
"""Name and size of each axis of a mesh; empty without a mesh."""

_TENSOR: Final = ("tensor", "tensor_transpose", "tensor_sequence", "autoregressive")

RULES: Final[dict[str, tuple[str, ...]]] = {
    "mlp": ("fsdp_transpose", "tensor", "tensor_sequence", "autoregressive"),
    "vocab": _TENSOR,
    "heads": _TENSOR,
    "experts": ("expert",),
    "embed": ("fsdp", "fsdp_transpose", "sequence", "tensor_transpose", "context", "expert"),
    "norm": ("tensor", "tensor_transpose"),
    "layers": ("stage",),
}
"""Mesh axes that shard each kind of dimension. Within an array the kinds are served in this order,
and each mesh axis shards one dimension."""

SYNONYMS: Final[dict[str, str]] = {
    "model": "tensor",
    "tp": "tensor",
    "mp": "tensor",
    "ep": "expert",
    "sp": "sequence",
    "cp": "context",
    "pp": "stage",
    "pipeline": "stage",
}
"""Other names of mesh axes, and the name that the rules have for them."""

_GRAIN: Final = 64
"""Widths are multiples of it where the full width is, so that small meshes divide them evenly."""


def partition(
    axes: Sequence[str | None], full: Sequence[int], shape: Sequence[int], mesh: MeshAxes
) -> tuple[ShardingEntry, ...] | None:
    """Returns the sharding of an array, one entry per dimension."""
    # An axis that does not divide its dimension evenly, at full size and as it is, is left out: the
    # array is replicated over it.
    used: set[str] = set()
    entries: dict[int, tuple[str, ...]] = {}
    for kind in RULES:
        for dimension in (index for index, axis in enumerate(axes) if axis == kind):
            taken: list[str] = []
            parts = 1
            for name, size in _sharding_axes(kind, mesh):
                divided = parts * size
                if name in used or full[dimension] % divided or shape[dimension] % divided:
                    continue
                taken.append(name)
                used.add(name)
                parts = divided
            entries[dimension] = tuple(taken)
    if not used:
        return None
    cuts = (entries.get(dimension, ()) for dimension in range(len(axes)))
    return tuple(cut[0] if len(cut) == 1 else cut or None for cut in cuts)


def _sharding_axes(dimension: str, mesh: MeshAxes) -> list[tuple[str, int]]:
    """Returns the mesh axes that shard a dimension, with their sizes, in the order of the rule."""
    rule = RULES[dimension]
    found = [
        (rule.index(canonical), name, size)
        for name, size in mesh
        if size > 1 and (canonical := SYNONYMS.get(name, name)) in rule
    ]
    return [(name, size) for _, name, size in sorted(found, key=lambda entry: entry[0])]


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of a model; `axes` says what each dimension is, None for one never sharded."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    group: str = "params"  # or `optimizer`, which says its dtype; it may be a dtype outright


Tree = Mapping[str, Union[Array, "Tree"]]


@dataclasses.dataclass(frozen=True)
class Widths:
    """Shrinks the widths of a model by a factor, for a mesh that is to divide them."""

    scale: float
    mesh: MeshAxes

    def of(self, full: int, axis: str) -> int:
        """Returns a width at this scale, in elements."""
        # Into so many parts a mesh cuts it if no other dimension takes its axes.
        parts = math.prod(size for _, size in _sharding_axes(axis, self.mesh))
        multiple = math.lcm(_GRAIN, parts if full % parts == 0 else 1)
        return min(full, math.ceil(full * self.scale / multiple) * multiple)

    def of_head(self, full: int) -> int:
        """Returns the width of one attention head; rotary embeddings need an even one."""
        return min(full, math.ceil(full * self.scale / 2) * 2)


def mapped(tree: Tree, group: str) -> Tree:
    """Returns a tree of the same arrays in another group, as an optimizer keeps beside them."""
    return {
        name: dataclasses.replace(node, group=group)
        if isinstance(node, Array)
        else mapped(node, group)
        for name, node in tree.items()
    }


def unstacked(tree: Tree) -> Tree:
    """Returns a tree whose `layers` are subtrees of one layer each, as MaxText's without scan."""
    found: dict[str, Array | Tree] = {}
    for name, node in tree.items():
        if isinstance(node, Array):
            found[name] = node
        elif name == "layers":
            count = next(each.shape[each.axes.index(name)] for each in _arrays(node))
            found |= {f"layers_{index}": _one_layer(node) for index in range(count)}
        else:
            found[name] = unstacked(node)
    return found


def _arrays(tree: Tree) -> Iterator[Array]:
    for node in tree.values():
        yield from [node] if isinstance(node, Array) else _arrays(node)


def _one_layer(tree: Tree) -> Tree:
    """Returns the tree of one layer, its arrays without the dimension that counts layers."""
    found: dict[str, Array | Tree] = {}
    for name, node in tree.items():
        if isinstance(node, Array):
            at = node.axes.index("layers")
            shape, axes = ((*each[:at], *each[at + 1 :]) for each in (node.shape, node.axes))
            found[name] = dataclasses.replace(node, shape=shape, axes=axes)
        else:
            found[name] = _one_layer(node)
    return found


_COUNT: Final = Array((), (), "int32")


def train_state(params: Tree, optimizer: Optimizer) -> Tree:
    """Returns the tree to save: the parameters, and with an optimizer the whole train state."""
    if optimizer == "none":
        return {"params": params}
    moments = mapped(params, "optimizer")
    chain: dict[str, Tree]
    if optimizer == "adamw":
        # ScaleByAdamState, the empty state of the weight decay, ScaleByScheduleState.
        chain = {"0": {"count": _COUNT, "mu": moments, "nu": moments}, "2": {"count": _COUNT}}
    else:
        # TraceState, ScaleByScheduleState.
        chain = {"0": {"trace": moments}, "1": {"count": _COUNT}}
    return {"step": _COUNT, "params": params, "opt_state": chain}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoder:
    """The published widths of one model, in elements, its layers stacked.

    Names, the order of dimensions and what each dimension is are those of MaxText's `llama2` and
    `mixtral` decoder blocks with `scan_layers: true` and `param_scan_axis: 1`
    (https://github.com/AI-Hypercomputer/maxtext). The widths are those of Llama 3.1
    (arXiv:2407.21783, table 3) and Mixtral 8x7B (arXiv:2401.04088, table 1), as MaxText's
    `configs/models/` has them too. A model without experts is dense; the width `mlp` is that inside
    a feed-forward block, or inside one expert.
    """

    vocab: int
    embed: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head: int = 128
    experts: int = 0

    def tree(self, widths: Widths) -> Tree:
        """Returns the parameters; numbers of layers, heads and experts do not shrink."""
        embed, vocab = widths.of(self.embed, "embed"), widths.of(self.vocab, "vocab")
        head = widths.of_head(self.head)

        def projection(heads: int) -> Tree:
            shape = (embed, self.layers, heads, head)
            return {"kernel": Array(shape, ("embed", "layers", "heads", None))}

        norm: Tree = {"scale": Array((embed, self.layers), ("norm", "layers"))}
        output = Array((self.heads, self.layers, head, embed), ("heads", "layers", None, "embed"))
        layers: Tree = {
            "pre_self_attention_layer_norm": norm,
            "self_attention": {
                "query": projection(self.heads),
                "key": projection(self.kv_heads),
                "value": projection(self.kv_heads),
                "out": {"kernel": output},
            },
            "post_self_attention_layer_norm": norm,
            **self._feed_forward(embed, widths.of(self.mlp, "mlp")),
        }
        model: Tree = {
            "token_embedder": {"embedding": Array((vocab, embed), ("vocab", "embed"))},
            "decoder": {
                "layers": layers,
                "decoder_norm": {"scale": Array((embed,), ("norm",))},
                "logits_dense": {"kernel": Array((embed, vocab), ("embed", "vocab"))},
            },
        }
        # Flax Linen's collection of parameters is called so, inside the train state's field.
        return {"params": model}

    def _feed_forward(self, embed: int, mlp: int) -> Tree:
        if not self.experts:
            into = Array((embed, self.layers, mlp), ("embed", "layers", "mlp"))
            out = Array((mlp, self.layers, embed), ("mlp", "layers", "embed"))
            return {
                "mlp": {"wi_0": {"kernel": into}, "wi_1": {"kernel": into}, "wo": {"kernel": out}}
            }
        into = Array((self.experts, self.layers, embed, mlp), ("experts", "layers", "embed", "mlp"))
        out = Array((self.experts, self.layers, mlp, embed), ("experts", "layers", "mlp", "embed"))
        gate = Array((embed, self.layers, self.experts), ("embed", "layers", None))
        return {"MoeBlock_0": {"gate": {"kernel": gate}, "wi_0": into, "wi_1": into, "wo": out}}


_LLAMA: Final = functools.partial(Decoder, vocab=128256, kv_heads=8)


def _gpt2(widths: Widths) -> Tree:
    """Returns the parameters of GPT-2 (124M): many small arrays, each layer on its own."""
    # Names and shapes are those of the published checkpoint
    # (https://huggingface.co/openai-community/gpt2, `config.json` and the tensors of
    # `model.safetensors`, without its constant masks). The output projection is the embedding, so
    # it is stored once. The numbers of layers and positions do not shrink.
    embed = widths.of(768, "embed")
    return {
        "wte": {"weight": Array((widths.of(50257, "vocab"), embed), ("vocab", "embed"))},
        "wpe": {"weight": Array((1024, embed), (None, "embed"))},
        "h": {str(index): _layer(embed) for index in range(12)},
        "ln_f": _norm(embed),
    }


def _layer(embed: int) -> Tree:
    return {
        "ln_1": _norm(embed),
        "attn": {
            "c_attn": _linear(embed, 3 * embed, ("embed", "heads")),
            "c_proj": _linear(embed, embed, ("heads", "embed")),
        },
        "ln_2": _norm(embed),
        "mlp": {
            "c_fc": _linear(embed, 4 * embed, ("embed", "mlp")),
            "c_proj": _linear(4 * embed, embed, ("mlp", "embed")),
        },
    }


def _linear(inputs: int, outputs: int, axes: tuple[str, str]) -> Tree:
    return {"weight": Array((inputs, outputs), axes), "bias": Array((outputs,), axes[1:])}


def _norm(embed: int) -> Tree:
    return {"weight": Array((embed,), ("norm",)), "bias": Array((embed,), ("norm",))}


_DEFAULT_DTYPE: Final = "float32"
"""As `weight_dtype` in MaxText's `base.yml`; its `mu_dtype` follows."""

_TREES: Final[Mapping[str, Callable[[Widths], Tree]]] = {
    "llama-8b": _LLAMA(embed=4096, mlp=14336, layers=32, heads=32).tree,
    "llama-70b": _LLAMA(embed=8192, mlp=28672, layers=80, heads=64).tree,
    "llama-405b": _LLAMA(embed=16384, mlp=53248, layers=126, heads=128).tree,
    "mixtral-8x7b": Decoder(
        vocab=32000, embed=4096, mlp=14336, layers=32, heads=32, kv_heads=8, experts=8
    ).tree,
    "gpt2": _gpt2,
}


def expanded(checkpoint: CheckpointConfig, mesh: MeshConfig | None) -> CheckpointConfig:
    """Returns a checkpoint with the spec of its preset in place of the preset."""
    # A width is shrunk by `scale` and rounded up to a multiple of 64, and of the parts that the
    # mesh cuts it into if it is one at full size; never above full size. What shards a dimension is
    # decided at full size, so that every scale has the same shardings.
    if checkpoint.model is None:
        return checkpoint
    axes = () if mesh is None else tuple(zip(mesh.mesh_axes, mesh.shape, strict=True))
    chosen = checkpoint.dtypes or {}
    spec = _spec(
        checkpoint.model,
        checkpoint.scale or 1.0,
        checkpoint.optimizer or "none",
        chosen.get("params", _DEFAULT_DTYPE),
        chosen.get("optimizer", _DEFAULT_DTYPE),
        axes,
        layers=checkpoint.layers,
    )
    return CheckpointConfig(spec=spec, random_seed=checkpoint.random_seed, name=checkpoint.label)


@functools.lru_cache(maxsize=128)
def _spec(
    model: str,
    scale: float,
    optimizer: Optimizer,
    params: str,
    moments: str,
    mesh: MeshAxes,
    *,
    layers: Layers | None,
) -> Spec:
    """Makes the tree once for all points that share it."""
    published = (_TREES[model](Widths(factor, mesh)) for factor in (1.0, scale))
    full, scaled = (
        train_state(unstacked(tree) if layers == "unstacked" else tree, optimizer)
        for tree in published
    )
    return _as_spec(full, scaled, {"params": params, "optimizer": moments}, mesh)


def _as_spec(
    full: Tree, scaled: Tree, groups: Mapping[str, str], mesh: MeshAxes
) -> dict[str, ArraySpec | Spec]:
    spec: dict[str, ArraySpec | Spec] = {}
    for name, node in full.items():
        twin = scaled[name]
        if isinstance(node, Array):
            assert isinstance(twin, Array)
            spec[name] = ArraySpec(
                # A group that has no dtype of its own to choose is named by its dtype.
                dtype=groups.get(node.group, node.group),
                shape=twin.shape,
                sharding=partition(node.axes, node.shape, twin.shape, mesh),
            )
        else:
            assert not isinstance(twin, Array)
            spec[name] = _as_spec(node, twin, groups, mesh)
    return spec
