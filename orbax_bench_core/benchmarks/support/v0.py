"""Orbax's v0 interface: `CheckpointManager` and its policies, array handlers, saves, restores."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.benchmarks.support.needs import require_orbax_module
from orbax_bench_core.benchmarks.support.saving import measure_parts

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.authoring import TestContext
    from orbax_bench_core.measure import Metrics


_NEEDS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "preservation_policies": {
        "LatestN": "n",
        "EveryNSeconds": "interval_secs",
        "EveryNSteps": "interval_steps",
        "CustomSteps": "custom_steps",
    },
    "save_decision_policies": {
        "FixedIntervalPolicy": "interval_steps",
        "SpecificStepsPolicy": "custom_steps",
        "ContinuousCheckpointingPolicy": "minimum_interval_secs",
        "InitialSavePolicy": None,
        "PreemptionSavePolicy": None,
    },
}
_MAY_BE_ABSENT: Final = {"n", "minimum_interval_secs"}
_CLASS: Final = {"PreemptionSavePolicy": "PreemptionCheckpointingPolicy"}
_FIELD: Final = {
    ("FixedIntervalPolicy", "interval_steps"): "interval",
    ("SpecificStepsPolicy", "custom_steps"): "steps",
    ("CustomSteps", "custom_steps"): "steps",
}


@dataclasses.dataclass(frozen=True)
class Policy:
    """One policy.

    Attributes:
        policy_type: Name of the policy.
        parameter: Name of its parameter; None for a policy without one.
        value: Value of the parameter.
    """

    policy_type: str
    parameter: str | None = None
    value: Any = None

    def make(self) -> Any:
        """Returns Orbax's policy."""
        orbax = require_orbax_module("checkpoint_managers", "checkpoint_policy")
        kind = getattr(orbax, _CLASS.get(self.policy_type, self.policy_type))
        if self.parameter is None:
            return kind()
        field = _FIELD.get((self.policy_type, self.parameter), self.parameter)
        return kind(**{field: self.value})


@dataclasses.dataclass(frozen=True)
class Policies:
    """Policies of a manager: which steps it saves, and which of them it keeps.

    Attributes:
        preservation_policies: A checkpoint is kept if any of these wants it.
        save_decision_policies: A step is saved if any of these wants it.
        expected_preserve_checkpoints: Steps that must be there at the end.
    """

    preservation_policies: Sequence[Policy]
    save_decision_policies: Sequence[Policy]
    expected_preserve_checkpoints: Sequence[int] = ()

    @classmethod
    def from_dict(cls, given: Any) -> Policies:
        """Reads one entry of `checkpoint_policies_options`."""
        if not isinstance(given, Mapping):
            raise ValueError(f"checkpoint_policies_options takes mappings, got {given!r}")
        lists = {}
        for key in _NEEDS:
            if not isinstance(given.get(key), list | tuple) or not given[key]:
                raise ValueError(f"checkpoint_policies_options needs a list of {key}")
            lists[key] = tuple(_policy(key, entry) for entry in given[key])
        unknown = set(given) - {*_NEEDS, "expected_preserve_checkpoints"}
        if unknown:
            raise ValueError(f"checkpoint_policies_options has no {', '.join(sorted(unknown))}")
        return cls(
            **lists, expected_preserve_checkpoints=given.get("expected_preserve_checkpoints") or ()
        )

    def manager_options(self) -> dict[str, Any]:
        """Returns the fields of `CheckpointManagerOptions` that these policies are."""
        orbax = require_orbax_module("checkpoint_managers", "checkpoint_policy")
        return {
            "preservation_policy": orbax.AnyPreservationPolicy(
                [policy.make() for policy in self.preservation_policies]
            ),
            "save_decision_policy": orbax.AnySavePolicy(
                [policy.make() for policy in self.save_decision_policies]
            ),
        }


def _policy(key: str, entry: Any) -> Policy:
    known = _NEEDS[key]
    name = str(entry.get("policy_type")) if isinstance(entry, Mapping) else ""
    if name not in known:
        raise ValueError(f"{key}: policy_type must be one of {', '.join(known)}; got {entry!r}")
    parameter = known[name]
    unknown = set(entry) - {"policy_type", parameter}
    if unknown:
        takes = f"takes {parameter}" if parameter else "takes no parameter"
        raise ValueError(f"{key}: {name} {takes}, got {', '.join(sorted(unknown))}")
    if parameter is None:
        return Policy(name)
    value = entry.get(parameter)
    if value is None and parameter not in _MAY_BE_ABSENT:
        raise ValueError(f"{key}: {name} needs {parameter}")
    return Policy(name, parameter, value)


def open_checkpoint_manager(
    directory: epath.Path, *, handlers: Mapping[str, Any] | None = None, **options: Any
) -> contextlib.closing[Any]:
    """Opens a `CheckpointManager`, to be closed whatever happens."""
    import orbax.checkpoint as ocp

    manager = ocp.CheckpointManager(
        directory,
        options=ocp.CheckpointManagerOptions(**options),
        item_handlers=None if handlers is None else dict(handlers),
    )
    return contextlib.closing(manager)


def measure_step(
    metrics: Metrics,
    context: TestContext,
    manager: Any,
    step: int,
    *,
    tree: Any,
    arguments: Any,
    directory: epath.Path,
    asynchronous: bool = True,
) -> bool:
    """Offers one step to a manager, and measures what it makes of it.

    A step that is saved gives the operations of `measure_two_part_save`, one that the manager's
    policy passes over gives `skip`: a mean of both would say nothing of either.
    """
    if not manager.should_save(step):
        with metrics.measure("skip"):
            saved = bool(manager.save(step, args=arguments))
        manager.wait_until_finished()  # the policy may have changed its mind
        return saved
    measure_two_part_save(
        metrics,
        context,
        directory,
        tree,
        begin=lambda: manager.save(step, args=arguments),
        finish=manager.wait_until_finished if asynchronous else None,
    )
    return True


def array_handler(
    *, use_colocated_python: bool, single_replica: bool = False, **options: Any
) -> Any:
    """Makes a handler for `jax.Array`."""
    import orbax.checkpoint as ocp

    from orbax_bench_core.state import require_pathways

    if use_colocated_python:
        require_pathways("use_colocated_python: true")
    if ocp.multihost.is_pathways_backend():
        registry = require_orbax_module(
            "_src.serialization.pathways_handler_registry", "use_colocated_python"
        )
        implementation = registry.CheckpointingImpl.from_options(
            use_colocated_python=use_colocated_python
        )
        return registry.get_pathways_array_handler(
            single_replica, checkpointing_impl=implementation, **options
        )
    handlers = ocp.type_handlers
    kind = handlers.SingleReplicaArrayHandler if single_replica else handlers.ArrayHandler
    return kind(**options)


def registry_with(array_handler: Any) -> Any:
    """Returns Orbax's usual handlers, with another one for `jax.Array`."""
    import jax
    import numpy as np
    import orbax.checkpoint as ocp

    usual = ocp.type_handlers.get_type_handler
    types = (int, float, bytes, np.number, np.ndarray, str)
    return ocp.type_handlers.create_type_handler_registry(
        *((kind, usual(kind)) for kind in types), (jax.Array, array_handler)
    )


def measure_two_part_save(
    metrics: Metrics,
    context: TestContext,
    path: epath.Path,
    tree: Any,
    *,
    begin: Callable[[], object],
    finish: Callable[[], object] | None,
    collectors: Sequence[str] | None = None,
) -> None:
    """Saves once and measures as `measure_parts`, where a save has no result to wait for."""
    import jax

    from orbax_bench_core.state import tree_bytes

    jax.block_until_ready(tree)
    measure_parts(
        metrics,
        context,
        path,
        begin,
        None if finish is None else lambda _: finish(),
        num_bytes=tree_bytes(tree),
        collectors=collectors,
    )


def restore_target(tree: Any) -> Any:
    """Returns shape, dtype and sharding of each array of a tree; other leaves stay."""
    import jax

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return leaf

    return jax.tree.map(of, tree)
