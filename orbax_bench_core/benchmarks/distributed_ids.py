"""Identity of host processes, as Orbax's multi-slice code wants it set up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

PROCESS_ID_FLAG = "experimental_orbax_use_distributed_process_id"
MESH_FLAG = "experimental_use_distributed_id_for_mesh_consistency"

_DEFINED_IN = {
    PROCESS_ID_FLAG: "_src.multihost.multihost",
    MESH_FLAG: "experimental.emergency.multihost",
}


def initialize() -> None:
    """Has Orbax learn which devices belong to which process; once per process, by all of them."""
    from orbax.checkpoint._src.multihost import multihost

    if not multihost.is_runtime_to_distributed_ids_initialized():
        multihost.initialize_runtime_to_distributed_ids()
    if not multihost.is_distributed_to_device_ids_initialized():
        multihost.initialize_distributed_to_device_ids()


@contextlib.contextmanager
def orbax_flags(**values: bool) -> Iterator[None]:
    """Sets command-line flags of Orbax for a while.

    They are read from the whole process, so they must not outlive the benchmark that sets them.

    Args:
        **values: Flags by name.

    Yields:
        Nothing.

    Raises:
        UnmetNeed: The installed Orbax has no such flag.
    """
    from absl import flags

    from orbax_bench_core.benchmarks import needs

    known = flags.FLAGS
    for name in values:
        needs.part_of_orbax(_DEFINED_IN[name], name)
        if name not in known:
            raise needs.UnmetNeed(f"the installed orbax-checkpoint has no flag {name}")
    was_parsed = known.is_parsed()
    if not was_parsed:
        known.mark_as_parsed()
    before: dict[str, Any] = {name: known[name].value for name in values}
    try:
        _set(values)
        yield
    finally:
        _set(before)
        if not was_parsed:
            known.unparse_flags()


def _set(values: Mapping[str, Any]) -> None:
    from absl import flags

    for name, value in values.items():
        setattr(flags.FLAGS, name, value)
