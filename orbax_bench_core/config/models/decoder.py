"""Decoder-only transformers in the layout of MaxText's checkpoints, layers stacked.

Names, the order of dimensions and what each dimension is are those of MaxText's `llama2` and
`mixtral` decoder blocks with `scan_layers: true` and `param_scan_axis: 1`
(https://github.com/AI-Hypercomputer/maxtext). The widths are those of the published models: Llama
3.1 (arXiv:2407.21783, table 3) and Mixtral 8x7B (arXiv:2401.04088, table 1), as MaxText's
`configs/models/` has them too.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from orbax_bench_core.config.models.tree import Array, Tree, Widths


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decoder:
    """The published widths of one model, in elements.

    Attributes:
        vocab: Tokens in the vocabulary.
        embed: Width between layers.
        mlp: Width inside a feed-forward block, or inside one expert.
        layers: Number of layers.
        heads: Query heads.
        kv_heads: Key and value heads.
        head: Width of a head.
        experts: Experts of each layer; 0 for a dense model.
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


LLAMA_8B: Final = Decoder(vocab=128256, embed=4096, mlp=14336, layers=32, heads=32, kv_heads=8)
"""8.03 billion parameters."""

LLAMA_70B: Final = Decoder(vocab=128256, embed=8192, mlp=28672, layers=80, heads=64, kv_heads=8)
"""70.6 billion parameters."""

LLAMA_405B: Final = Decoder(vocab=128256, embed=16384, mlp=53248, layers=126, heads=128, kv_heads=8)
"""405.9 billion parameters."""

MIXTRAL_8X7B: Final = Decoder(
    vocab=32000, embed=4096, mlp=14336, layers=32, heads=32, kv_heads=8, experts=8
)
"""46.7 billion parameters, in eight experts per layer."""
