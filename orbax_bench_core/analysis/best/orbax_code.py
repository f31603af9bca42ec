"""Options of benchmarks as code of Orbax, and what Orbax does by default.

The tables are those of one release; a test compares them with the Orbax that is installed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.sweep import BUILTINS, SweepPoint

RELEASE: Final = "orbax-checkpoint 0.12.8"
"""Release of the attributes and defaults below."""

_GIB: Final = 2**30
_CLASSES: Final = frozenset(
    BUILTINS[name]
    for name in (
        "save_restore",
        "staged_save",
        "train_interference",
        "resharding",
        "restore_and_broadcast",
        "replica_parallel_multislice",
    )
    if name in BUILTINS
)
"""Built-ins that hand these options to Orbax's v1 context."""


@dataclasses.dataclass(frozen=True)
class Attribute:
    """Attribute of Orbax's context that an option sets.

    Attributes:
        path: Where it is, below the context.
        default: What Orbax does when nothing is set.
        gib: Whether the option is in GiB, and the attribute in bytes.
        dtype: Whether it is the name of a dtype.
    """

    path: str
    default: Any = None
    gib: bool = False
    dtype: bool = False

    def code(self, value: Any) -> str:
        """Returns a value as it is written in code."""
        if self.gib and value is not None:
            return str(int(value * _GIB))
        return "stored" if self.dtype and value is not None else repr(value)


ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "use_ocdbt": Attribute("array.saving.use_ocdbt", True),
    "use_zarr3": Attribute("array.saving.use_zarr3", True),
    "use_compression": Attribute("array.saving.use_compression", True),
    # Orbax has None here, which it takes for True except on Pathways.
    "use_replica_parallel": Attribute("array.saving.use_replica_parallel", True),
    "enable_replica_parallel_separate_folder": Attribute(
        "array.saving.enable_replica_parallel_separate_folder", False
    ),
    "chunk_byte_size": Attribute("array.saving.storage_options.chunk_byte_size"),
    "save_dtype": Attribute("array.saving.scoped_storage_options_creator", dtype=True),
    "use_load_and_broadcast": Attribute("array.loading.use_load_and_broadcast", False),
    "save_concurrent_gb": Attribute("memory.write_concurrent_bytes", gib=True),
    "restore_concurrent_gb": Attribute("memory.read_concurrent_bytes", gib=True),
    "device_host_concurrent_gb": Attribute("memory.transfer_concurrent_bytes", gib=True),
}
"""The attribute of each option, by its name in a suite."""


_STORED: Final = """\
def stored(path, leaf):
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
        return None
    return ocp.options.ArrayOptions.Saving.StorageOptions(dtype=jnp.{dtype})

"""
"""Casts floating-point arrays as `store_floating_as` of the state room does."""


def orbax_options(point: SweepPoint) -> dict[str, Any]:
    """Returns the options of a point that Orbax knows; none of a benchmark that has its own."""
    if point.benchmark not in _CLASSES:
        return {}
    return {name: value for name, value in point.options.items() if name in ATTRIBUTES}


def as_code(point: SweepPoint) -> str:
    """Returns Python that saves and loads as a point does; empty where nothing is known.

    Options that are as Orbax has them are not set.
    """
    options = orbax_options(point)
    if not options:
        return ""
    changed = [
        f"context.{ATTRIBUTES[name].path} = {ATTRIBUTES[name].code(value)}"
        for name, value in options.items()
        if value != ATTRIBUTES[name].default
    ]
    dtype = options.get("save_dtype")
    if point.options.get("async_enabled", False):
        save = ["    response = ocp.save_async(path, tree)", "    response.result()  # later"]
    else:
        save = ["    ocp.save(path, tree)"]
    return "\n".join(
        [
            *(["import jax.numpy as jnp"] if dtype is not None else []),
            "from orbax.checkpoint import v1 as ocp",
            "",
            *(_STORED.format(dtype=dtype).splitlines() if dtype is not None else []),
            "context = ocp.Context()",
            *changed,
            "with context:",
            *save,
            "    restored = ocp.load(path, target)",
        ]
    )


def as_suite(point: SweepPoint, generator: str) -> str:
    """Returns a point as an entry of `benchmarks` in a suite file."""
    lines = ["benchmarks:", f"- generator: {generator}", "  options:"]
    given = point.given_options
    lines += [f"    {name}: {json.dumps(value)}" for name, value in given.items()]
    if not given:
        lines[-1] = "  options: {}"
    if point.storage is not None:
        lines.append(f"storage: {json.dumps(point.storage)}")
    if point.conditions.host_memory != "reused":
        lines += ["execution:", f"  host_memory: {point.conditions.host_memory}"]
    return "\n".join(lines)


def is_default(point: SweepPoint) -> bool:
    """Returns whether all options that Orbax knows are as Orbax has them, and there are some."""
    options = orbax_options(point)
    return bool(options) and all(
        value == ATTRIBUTES[name].default for name, value in options.items()
    )
