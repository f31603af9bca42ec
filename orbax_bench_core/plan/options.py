"""Storage options of a plan: what decides chunks and bytes of a save by Orbax."""

import ast
import dataclasses
import functools
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.errors import UserError

_LOCAL_TARGET: Final = 2 * 2**30
_GCS_TARGET: Final = 400 * 2**20
_GIB: Final = 2**30
_SOURCE: Final = "orbax/checkpoint/experimental/v1/_src/context/options.py"


@functools.cache
def orbax_defaults() -> Mapping[str, Any]:
    """Returns the default of each option of `ArrayOptions.Saving` in the installed Orbax.

    They are read from its source: to import it takes seconds, and a plan needs no JAX. Where that
    source is not found, they are those of orbax-checkpoint 0.12.8.
    """
    found: dict[str, Any] = {
        "use_ocdbt": True,
        "use_compression": True,
        "use_replica_parallel": None,
        "chunk_byte_size": None,
        "ocdbt_target_data_file_size": None,
    }
    try:
        place = importlib.metadata.distribution("orbax-checkpoint").locate_file(_SOURCE)
        nodes = ast.parse(Path(str(place)).read_text(encoding="utf-8")).body
        for name in ("ArrayOptions", "Saving"):
            nodes = next(n.body for n in nodes if isinstance(n, ast.ClassDef) and n.name == name)
    except (ImportError, OSError, StopIteration, SyntaxError):
        nodes = []
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
            and node.target.id in found
        ):
            found[node.target.id] = node.value.value
    if found["use_replica_parallel"] is None:
        # `_get_default_use_replica_parallel` of Orbax: not where JAX_PLATFORMS names GPUs.
        found["use_replica_parallel"] = True
    return found


def _as_orbax(name: str) -> Any:
    return dataclasses.field(default_factory=lambda: orbax_defaults()[name])


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageOptions:
    """Options of a save and a load, named as those of `save_restore`; by default Orbax's own.

    Attributes:
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_compression: Compress array data with zstd.
        use_replica_parallel: Have each replica write a part of a replicated array; Orbax does so
            by default, except where JAX_PLATFORMS names GPUs.
        chunk_byte_size: Largest chunk of an array on storage, in bytes; None takes one per shard.
        target_file_size: Bytes from which on OCDBT begins another data file, 0 for never; None for
            Orbax's own: 2 GiB, or 400 MiB on Cloud Storage.
        on_gcs: Whether the checkpoint goes to Cloud Storage.
        save_concurrent_gb: Most data in flight while saving, in GiB; None sets no limit.
        restore_concurrent_gb: Most data in flight while loading, in GiB; None sets no limit.
        compression_ratio: Bytes on storage over bytes of the arrays, as it was measured; None if it
            was not.
    """

    use_ocdbt: bool = _as_orbax("use_ocdbt")
    use_compression: bool = _as_orbax("use_compression")
    use_replica_parallel: bool = _as_orbax("use_replica_parallel")
    chunk_byte_size: int | None = _as_orbax("chunk_byte_size")
    target_file_size: int | None = _as_orbax("ocdbt_target_data_file_size")
    on_gcs: bool = False
    save_concurrent_gb: float | None = None
    restore_concurrent_gb: float | None = None
    compression_ratio: float | None = None

    def __post_init__(self) -> None:
        """Refuses what Orbax or this arithmetic cannot take.

        Raises:
            UserError: A number is out of range.
        """
        for name, least in (("chunk_byte_size", 1), ("target_file_size", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"{name} must be {least} or more bytes, got {value}")
        for name in ("save_concurrent_gb", "restore_concurrent_gb", "compression_ratio"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{name} must be a positive number, got {value}")

    @property
    def target(self) -> int:
        """Bytes from which on OCDBT begins another data file; 0 for never."""
        if self.target_file_size is not None:
            return self.target_file_size
        return _GCS_TARGET if self.on_gcs else _LOCAL_TARGET

    @property
    def save_limit(self) -> int | None:
        """Most bytes in flight while saving; None sets no limit."""
        return _bytes(self.save_concurrent_gb)

    @property
    def load_limit(self) -> int | None:
        """Most bytes in flight while loading; None sets no limit."""
        return _bytes(self.restore_concurrent_gb)

    @property
    def label(self) -> str:
        """The options for people."""
        parts = [
            "OCDBT" if self.use_ocdbt else "a folder per array",
            "zstd" if self.use_compression else "no compression",
        ]
        if self.use_replica_parallel:
            parts.append("replicas write in parallel")
        if self.chunk_byte_size is not None:
            parts.append(f"chunks of at most {self.chunk_byte_size} B")
        return ", ".join(parts)


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else int(gib * _GIB)


def options_of(options: Mapping[str, Any]) -> StorageOptions:
    """Returns the storage options among those of a sweep point; others are left out."""
    known = {field.name for field in dataclasses.fields(StorageOptions)}
    return StorageOptions(**{name: value for name, value in options.items() if name in known})
