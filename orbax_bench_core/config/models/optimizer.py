"""What a training job checkpoints beside the parameters.

The layout is that of `flax.training.train_state.TrainState` with a state of optax
(https://optax.readthedocs.io): the chains of `optax.adamw` and of `optax.sgd` with momentum, each
with a schedule of the learning rate. Parts of a chain that hold nothing are left out.
"""

from __future__ import annotations

from typing import Final

from orbax_bench_core.config.checkpoint import Optimizer
from orbax_bench_core.config.models.tree import Array, Tree, mapped

_COUNT: Final = Array((), (), "int32")


def train_state(params: Tree, optimizer: Optimizer) -> Tree:
    """Returns what is saved: the parameters, and with an optimizer the whole train state.

    Args:
        params: The parameters.
        optimizer: `adamw` has two moments of each parameter, `sgd` one trace, `none` nothing.
    """
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
