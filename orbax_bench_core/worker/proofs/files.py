"""Rules of options that show in files: the formats, sizes and places of what was saved."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.files import absolute, matching
from orbax_bench_core.inventory import StoredCheckpoint, ZarrArray
from orbax_bench_core.worker.proofs.evidence import (
    FILES,
    OptionEvidence,
    Proof,
    ProvenEffect,
    Rule,
    judged,
    only_if,
    unproved,
)

_FLOATING: Final = ("float", "bfloat")
_DIGESTS: Final = "digests.json"


_Read = Callable[[StoredCheckpoint], bool | None]


def _by_trees(
    asked: Any, evidence: OptionEvidence, read: _Read, proofs: tuple[str, str]
) -> ProvenEffect:
    """Compares with what every tree says; `proofs` are of what is, and of what is not."""
    found = {value for tree in evidence.trees if (value := read(tree)) is not None}
    if not found:
        return unproved("the repeat left no tree of arrays on storage that tells it")
    if len(found) > 1:
        return unproved("the trees that the repeat left differ in it")
    (value,) = found
    return judged(value == bool(asked), proofs[0] if value else proofs[1])


def _described(tree: StoredCheckpoint) -> list[ZarrArray]:
    """Returns Zarr's metadata of the first arrays of a tree."""
    return [array.zarr for array in tree.arrays if array.zarr is not None]


def _all_alike(values: Iterable[bool]) -> bool | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _ocdbt(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    proofs = ("the arrays lie in one database, manifest.ocdbt", "there is no manifest.ocdbt")
    return _by_trees(asked, evidence, lambda tree: tree.ocdbt, proofs)


def _array_metadata(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    proofs = ("there are array_metadatas", "there are no array_metadatas")
    return _by_trees(asked, evidence, lambda tree: tree.has_array_metadata, proofs)


def _zarr3(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    def read(tree: StoredCheckpoint) -> bool | None:
        return _all_alike(array.zarr_format == 3 for array in _described(tree))

    return _by_trees(asked, evidence, read, ("every array has a zarr.json", "arrays have .zarray"))


def _compression(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    def read(tree: StoredCheckpoint) -> bool | None:
        return _all_alike(array.compressor is not None for array in _described(tree))

    codecs = {array.compressor for tree in evidence.trees for array in _described(tree)} - {None}
    proof = f"codec of the arrays: {', '.join(map(str, codecs))}"
    return _by_trees(asked, evidence, read, (proof, "the arrays have no compressor"))


def _dtype(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("files do not say which dtypes the arrays had before they were saved")
    # Python's own numbers, which nobody casts, lie there as arrays without axes.
    found = {
        array.dtype
        for tree in evidence.trees
        for array in _described(tree)
        if array.shape and array.dtype.startswith(_FLOATING)
    }
    if not found:
        return unproved("the repeat left no floating-point array on storage")
    return judged(found == {asked}, f"floating-point arrays on storage: {', '.join(sorted(found))}")


def _chunks(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    saved = [array for tree in evidence.trees for array in tree.arrays]
    # Of scalars nobody says it.
    whole = {array.zarr: one for array in saved if (one := array.is_one_chunk) is not None}
    if not whole:
        return unproved("the repeat left no array whose chunks and shards are known")
    largest = max(zarr.chunk_bytes for zarr in whole if zarr is not None)
    if asked is None:
        if all(whole.values()):
            return ProvenEffect("in effect", "every array has one chunk per shard")
        return unproved("some arrays have several chunks per shard, by Orbax's own limit")
    if largest > asked:
        return ProvenEffect("not in effect", f"the largest chunk has {largest} bytes")
    if all(whole.values()):
        return unproved(f"no shard is larger than its one chunk, of at most {largest} bytes")
    return ProvenEffect("in effect", f"the largest chunk has {largest} bytes")


def _shards(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    """Tells on how many devices a model lay that was saved, by the array with most shards."""
    parts = [
        array.num_bytes // array.zarr.chunk_bytes
        for tree in evidence.trees
        for array in tree.arrays
        if array.is_one_chunk and array.zarr and array.zarr.chunk_bytes
    ]
    if asked is None or not parts:
        return unproved("null takes all devices of the mesh, or no array tells its shards")
    return only_if(max(parts) == asked, f"an array was saved in {max(parts)} shards")


def _file_size(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    sizes = {
        (tree.root, file): size
        for tree in evidence.trees
        for file, size in tree.sizes.items()
        if file.parent.name == "d" and file.parts[0].startswith("ocdbt.process_")
    }
    of_processes = {(root, file.parts[0]) for root, file in sizes}
    proof = f"{len(sizes)} data files, of at most {max(sizes.values(), default=0)} bytes"
    # A file is ended with the write that reaches the size; small trees never reach Orbax's own.
    several = len(sizes) > len(of_processes)
    return only_if(bool(sizes) and several == bool(asked), proof)


def _sharding_file(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if not evidence.trees:
        return unproved("the repeat left no tree of arrays")
    found = any(file.name == "_sharding" for tree in evidence.trees for file in tree.sizes)
    return judged(found == bool(asked), f"there is {'a' if found else 'no'} file _sharding")


def _permissions(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None or "://" in str(evidence.directory):
        return unproved("null leaves it to the umask, and a bucket has no modes")
    found = {f"{Path(each).stat().st_mode & 0o777:o}" for each in evidence.checkpoints}
    proof = f"mode of the checkpoint's folder: {', '.join(sorted(found))}"
    return only_if(found == {asked.lstrip("0")}, proof)


def _moved(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("null deletes, which leaves no trace")
    moved = [step.name for step in matching(evidence.directory, f"steps/{asked}/*")]
    return judged(bool(moved), f"steps that were moved to {asked}: {', '.join(sorted(moved))}")


def _interval(folders: str) -> Rule:
    """Returns a rule by the steps that were kept in each of some folders of a repeat."""

    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        kept: dict[str, list[int]] = {}
        for step in matching(evidence.directory, f"{folders}/*"):
            if step.name.isdecimal():
                kept.setdefault(str(step.parent), []).append(int(step.name))
        apart = {b - a for steps in kept.values() for a, b in itertools.pairwise(sorted(steps))}
        if apart == {asked}:
            return ProvenEffect("in effect", f"steps {asked} apart lie in {folders}")
        return unproved(f"no two steps that lie in {folders} tell it")

    return rule


def _trees(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = len(evidence.trees)  # of many, not all are looked at
    return only_if(found == asked, f"{found} trees of arrays lie on storage")


def _cache_of_programs(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = (evidence.directory / "compilation_cache").exists()
    if asked != "off" and not found:
        return unproved("JAX has compiled nothing that this process had not compiled before")
    if asked == "cold":
        return unproved("cold and warm differ only in the life after a kill")
    proof = "JAX has written programs to compilation_cache" if found else "JAX has kept no program"
    return judged(found == (asked != "off"), proof)


def _captured(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("null asks for nothing")
    file = absolute(asked) / _DIGESTS
    if file.exists() and evidence.wrote(file):
        return ProvenEffect("in effect", f"{file} was written")
    return unproved(f"{file} was not written in this repeat")


def _files_of_first(evidence: OptionEvidence) -> tuple[int, str]:
    """Returns how many files the first process has written, and says so."""
    files = len([*matching(evidence.directory, "ckpt/__0_*.distcp")])
    return files, f"the first process has written {files} files"


def _single_file(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    files, proof = _files_of_first(evidence)
    if evidence.options["save_thread_count"] != 1:
        return unproved(proof)
    return judged((files == 1) == bool(asked), proof)


def _threads(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    files, proof = _files_of_first(evidence)
    if not evidence.options["single_file_per_rank"]:
        return unproved(f"{proof}, one for each tensor, whatever the number of threads")
    return only_if(files == asked, proof)


def _traced(evidence: OptionEvidence, below: str) -> bool:
    """Tells whether the profiler has written traces of the point, which warm-ups are for."""
    files = f"{evidence.traces.name}__*/{below}plugins/profile/*/*.xplane.pb"
    return any(matching(evidence.traces.parent, files))


def _trace(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if not _traced(evidence, "") and not _traced(evidence, "warmup_*/"):
        return only_if(not asked, "there are no traces of the point")
    proof = "there are traces of the point"
    return only_if(asked, proof if asked else f"{proof}, by another option")


def _trace_each(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    each = _traced(evidence, "warmup_*/")
    if not each and not _traced(evidence, ""):
        return unproved("there are no traces of the point")
    said = "each" if each else "one"
    return only_if(each == bool(asked), f"there are traces of {said} traced warm-up")


PROOFS: Final[Mapping[str, Proof]] = {
    "use_ocdbt": Proof(FILES, _ocdbt),
    "use_zarr3": Proof(FILES, _zarr3),
    "use_compression": Proof(FILES, _compression),
    "chunk_byte_size": Proof(FILES, _chunks),
    "save_dtype": Proof(FILES, _dtype),
    "ocdbt_target_data_file_size": Proof(FILES, _file_size),
    "enable_write_sharding_file": Proof(FILES, _sharding_file),
    "path_permission_mode": Proof(FILES, _permissions),
    "use_metadata_store": Proof(FILES, _array_metadata),
    "enable_trace": Proof(FILES, _trace),
    "trace_every_repeat": Proof(FILES, _trace_each),
    "enable_xprof": Proof(FILES, _trace),
    "local_save_interval_steps": Proof(FILES, _interval("local/*/process_*")),
    "persistent_save_interval_steps": Proof(FILES, _interval("persistent/*")),
    "todelete_subdir": Proof(FILES, _moved),
    "tree_items": Proof(FILES, _trees),
    "compilation_cache": Proof(FILES, _cache_of_programs),
    "capture_digests_path": Proof(FILES, _captured),
    "save_devices": Proof(FILES, _shards),
    "single_file_per_rank": Proof(FILES, _single_file),
    "save_thread_count": Proof(FILES, _threads),
}
"""How options are proved by this, by their names."""
