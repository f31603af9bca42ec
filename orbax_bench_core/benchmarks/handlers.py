"""Handlers of Orbax that act on one checkpoint only, on Pathways and elsewhere.

Orbax's own way is to replace the handlers of the whole process, which every later benchmark in a
warm worker would then measure.
"""

from __future__ import annotations

from typing import Any


def array_handler(
    *, use_colocated_python: bool, single_replica: bool = False, **options: Any
) -> Any:
    """Makes a handler for `jax.Array`.

    Args:
        use_colocated_python: On Pathways, whether the hosts of the devices read and write.
        single_replica: Whether one replica reads and broadcasts to the others.
        **options: Passed to Orbax's `ArrayHandler`, or to its `SingleReplicaArrayHandler`.

    Raises:
        UnmetNeed: Colocated Python is asked for and this is not Pathways.
    """
    import orbax.checkpoint as ocp

    from orbax_bench_core.benchmarks import needs

    if use_colocated_python:
        needs.pathways("use_colocated_python: true")
    if ocp.multihost.is_pathways_backend():
        registry = needs.part_of_orbax(
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
    """Returns Orbax's usual handlers, with another one for `jax.Array`.

    Args:
        array_handler: The handler.
    """
    import jax
    import numpy as np
    import orbax.checkpoint as ocp

    usual = ocp.type_handlers.get_type_handler
    types = (int, float, bytes, np.number, np.ndarray, str)
    return ocp.type_handlers.create_type_handler_registry(
        *((kind, usual(kind)) for kind in types), (jax.Array, array_handler)
    )
