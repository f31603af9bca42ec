"""Parameters of the model of a point, which an async study orders its sizes by."""

import math
from typing import Final

from orbax_bench_core.config import ArraySpec, Spec, expanded, leaves
from orbax_bench_core.errors import UserError
from orbax_bench_core.sweep import SweepPoint, benchmark_environment, printed_apart

_PARAMETERS: Final = "params"
_NO_PARAMETERS: Final = frozenset({"opt_state", "optimizer", "step"})
_TIMEOUT_S: Final = 300.0


def parameters_in(spec: Spec) -> int:
    """Returns the elements of the parameters in a spec.

    Those are the arrays under `params`; in a tree without one, all but `opt_state`, `optimizer` and
    `step`.
    """
    chosen: Spec
    if _PARAMETERS in spec:
        chosen = {_PARAMETERS: spec[_PARAMETERS]}
    else:
        chosen = {name: node for name, node in spec.items() if name not in _NO_PARAMETERS}
    arrays = (leaf for _, leaf in leaves(chosen) if isinstance(leaf, ArraySpec))
    return sum(math.prod(array.shape) for array in arrays)


class ParameterCounter:
    """Counts the parameters of points, each Flax NNX factory once."""

    def __init__(self, suite_file: str = "") -> None:
        """Begins with nothing counted; the module of a factory may lie beside `suite_file`."""
        self._suite_file = suite_file
        self._factories: dict[str, int | None] = {}

    def __call__(self, point: SweepPoint) -> int | None:
        """Returns the parameters of a point's model; None if nothing tells."""
        factory = point.checkpoint.nnx
        if factory is not None:
            if factory not in self._factories:
                self._factories[factory] = _of_factory(factory, self._suite_file)
            return self._factories[factory]
        spec: Spec | None = expanded(point.checkpoint, point.mesh).spec
        return None if spec is None else parameters_in(spec) or None


def _of_factory(factory: str, suite_file: str) -> int | None:
    """Returns the parameters of a model, by a process that imports it and computes no value.

    Returns None where it cannot be imported: a run may be studied far from where it was made.
    """
    try:
        printed = printed_apart(
            "orbax_bench_core.state.nnx",
            "parameters",
            factory,
            environment=benchmark_environment(suite_file),
            within_s=_TIMEOUT_S,
        )
    except UserError:
        return None
    last = printed.strip().rpartition("\n")[2]
    return int(last) if last.isdecimal() else None
