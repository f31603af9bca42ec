"""GPT-2 (124M) as published: many small arrays, each layer on its own.

Names and shapes are those of the published checkpoint (https://huggingface.co/openai-community/gpt2,
`config.json` and the tensors of `model.safetensors`, without its constant masks). The output
projection is the embedding, so it is stored once.
"""

from __future__ import annotations

from typing import Final

from orbax_bench_core.config.models.tree import Array, Tree, Widths

_VOCAB: Final = 50257
_POSITIONS: Final = 1024
_EMBED: Final = 768
_LAYERS: Final = 12


def tree(widths: Widths) -> Tree:
    """Returns the parameters; the numbers of layers and positions do not shrink."""
    embed = widths.of(_EMBED, "embed")
    layers = {str(index): _layer(embed) for index in range(_LAYERS)}
    return {
        "wte": {"weight": Array((widths.of(_VOCAB, "vocab"), embed), ("vocab", "embed"))},
        "wpe": {"weight": Array((_POSITIONS, embed), (None, "embed"))},
        "h": layers,
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
