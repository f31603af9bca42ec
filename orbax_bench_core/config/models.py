"""Model presets: trees of real models' checkpoints, by name and scale.

A preset becomes an ordinary spec, so that whatever reads specs (sharding checks, sizes, digests,
the generator) needs to know nothing of models.
"""

import functools
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.config.checkpoint import CheckpointConfig, Layers, Optimizer
from orbax_bench_core.config.mesh import MeshConfig
from orbax_bench_core.config.model_arrays import Array, Tree, Widths, train_state, unstacked
from orbax_bench_core.config.model_sharding import MeshAxes, partition
from orbax_bench_core.config.published_models import TREES
from orbax_bench_core.config.spec import ArraySpec, Spec

_DEFAULT_DTYPE: Final = "float32"
"""As `weight_dtype` in MaxText's `base.yml`; its `mu_dtype` follows."""


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
    published = (TREES[model](Widths(factor, mesh)) for factor in (1.0, scale))
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
