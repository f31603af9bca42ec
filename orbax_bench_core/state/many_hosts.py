"""Devices of many hosts: of processes that join, or of Pathways, where one controls them all."""

import contextlib
import importlib
import inspect
from typing import Any

import jax

from orbax_bench_core.interface import UnmetNeed
from orbax_bench_core.state import orbax_api
from orbax_bench_core.state.tree import StateError

_PLATFORM = "proxy"


class NotOnPathways(UnmetNeed):
    """Something needs Pathways, and JAX runs on something else; the repeat is skipped."""


def initialize_if_used() -> bool:
    """Joins Pathways if `JAX_PLATFORMS` asks for it; call it before the first device is used."""
    # Its client is imported only then: it brings Orbax, a web framework and more with it, which
    # costs the start of every process nearly as much as JAX does.
    platforms: str = getattr(jax.config, "jax_platforms", None) or ""
    if _PLATFORM not in platforms:
        return False
    try:
        pathwaysutils = importlib.import_module("pathwaysutils")
    except ImportError as error:
        raise StateError(
            f"JAX_PLATFORMS is {platforms!r}, which is Pathways, and its client "
            f"cannot be imported ({error}); install orbax-bench[pathways]"
        ) from None
    if not pathwaysutils.is_pathways_backend_used():
        return False
    pathwaysutils.initialize()
    return True


def join_processes(
    coordinator: str, *, num_processes: int, process_id: int, heartbeat_s: int
) -> None:
    """Joins this process with others; call it before the first device is used.

    Args:
        coordinator: `host:port` at which process 0 listens.
        num_processes: How many join.
        process_id: Index of this one.
        heartbeat_s: Seconds of silence after which JAX takes a process for lost; releases without
            the setting have one of their own.
    """
    if jax.config.values.get("jax_cpu_collectives_implementation") not in {"gloo", "mpi"}:
        # An old JAX joins processes on CPUs only when it is told how.
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    known = inspect.signature(jax.distributed.initialize).parameters
    name = "heartbeat_timeout_seconds"
    settings: dict[str, Any] = {name: heartbeat_s} if name in known else {}
    jax.distributed.initialize(
        coordinator, num_processes=num_processes, process_id=process_id, **settings
    )


def is_used() -> bool:
    """Says whether JAX runs on Pathways."""
    import orbax.checkpoint as ocp

    return bool(ocp.multihost.is_pathways_backend())


def require_pathways(option: str) -> None:
    """Checks that JAX runs on Pathways.

    Raises:
        NotOnPathways: JAX runs elsewhere: such a point is skipped.
    """
    if not is_used():
        raise NotOnPathways(
            f"{option} needs Pathways, which is JAX_PLATFORMS=proxy; JAX runs on "
            f"{jax.default_backend()} here"
        )


def loading_context(*, colocated_python: bool) -> contextlib.AbstractContextManager[object]:
    """Returns the context in which a checkpoint is loaded."""
    if colocated_python and is_used():
        made: contextlib.AbstractContextManager[object] = orbax_api.make_colocated_context()
        return made
    return contextlib.nullcontext()
