"""Published models: the trees of their parameters, by the names of presets."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Final

from orbax_bench_core.config.model_arrays import Array, Tree, Widths


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


_LLAMA: Final = functools.partial(Decoder, vocab=128256, kv_heads=8)
TREES: Final[Mapping[str, Callable[[Widths], Tree]]] = {
    "llama-8b": _LLAMA(embed=4096, mlp=14336, layers=32, heads=32).tree,
    "llama-70b": _LLAMA(embed=8192, mlp=28672, layers=80, heads=64).tree,
    "llama-405b": _LLAMA(embed=16384, mlp=53248, layers=126, heads=128).tree,
    "mixtral-8x7b": Decoder(
        vocab=32000, embed=4096, mlp=14336, layers=32, heads=32, kv_heads=8, experts=8
    ).tree,
    "gpt2": _gpt2,
}
