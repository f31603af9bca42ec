"""Proofs of options: what files, samples, Orbax's events and its log tell of each of them."""

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from orbax_bench_core.files import AnyPath, absolute, matching
from orbax_bench_core.inventory import StoredCheckpoint, ZarrArray, read_saved_trees
from orbax_bench_core.measure import STEPS, TIME, Heard, Sample
from orbax_bench_core.records import Effect

_HANDLER: Final = "/jax/orbax/array_handler/init"
_BROADCAST: Final = "/jax/checkpoint/read/broadcast_duration_secs"
_TRACEMALLOC: Final = "7_memory/tracemalloc_peak_diff_mb"
_READ: Final = "5_inventory/load_requested_gb"
_FLOATING: Final = ("float", "bfloat")
_LOADS: Final = frozenset({"load", "restore"})
_GIB: Final = 2**30
_GB: Final = 10**9
_MIB: Final = 2**20
_REQUESTS: Final = "storage_reads_per_host_count"
_DIGESTS: Final = "digests.json"
_SOURCES: Final = 3
"""How often `p2p_checkpoint_manager` saves all of its steps."""

LINES: Final = (
    "Created BasePyTreeCheckpointHandler",
    "CheckpointManager created",
    "Configured emergency.CheckpointManager",
    "Finalizing %s",
    "MemoryRegulated: Updated",
    "Option `device_host_max_bytes`",
    "Pytree save finalize",
    "Renaming %s to %s",
    "Scheduling serialization of",
    "[single_host_load_and_broadcast]",
    "save_device_host_concurrent_bytes=",
    "Started %s checkpoint",
    "Total number of broadcasts",
    "Transferring arrays to host memory",
    "Using available memory",
)
"""What stands in the formats of those lines of Orbax's log that tell settings."""


class ProvenEffect(NamedTuple):
    """What is proven of one option, and by what."""

    state: Effect
    proof: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionEvidence:
    """Traces that a repeat left."""

    options: Mapping[str, Any]  # every option of the point
    directory: AnyPath  # where it left its checkpoints
    traces: AnyPath  # how the folders of the profiler's traces of this point begin
    begun: float = 0.0  # when it began, in seconds since 1970
    samples: tuple[Sample, ...]  # what it measured
    heard: Heard  # events of Orbax with their labels
    lines: tuple[str, ...]  # lines of Orbax's own log that tell settings

    @cached_property
    def trees(self) -> tuple[StoredCheckpoint, ...]:
        """What it left on storage."""
        try:
            return read_saved_trees(self.directory)
        except OSError:
            return ()

    @property
    def checkpoints(self) -> list[AnyPath]:
        """Folders of the checkpoints that hold these trees as an item."""
        return [type(self.directory)(tree.root).parent for tree in self.trees]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each operation was measured."""
        return Counter(sample.operation for sample in self.samples if sample.metric == TIME)

    def labels(self, name: str) -> set[str]:
        """Values of one label of the array handlers that were made."""
        return {
            str(value).lower()
            for event, labels in self.heard
            for label, value in labels
            if event == _HANDLER and label == name
        }

    def said(self, pattern: str) -> set[str]:
        """What the group of a pattern is in the lines of the log."""
        return {text for line in self.lines for text in re.findall(pattern, line)}

    def steps(self, operation: str) -> int:
        """Steps of a measured phase of training."""
        return sum(
            int(sample.value)
            for sample in self.samples
            if sample.operation == operation and sample.metric == STEPS.name
        )

    def wrote(self, file: AnyPath) -> bool:
        """Tells whether a file was written since the repeat began."""
        if "://" in str(file):
            return bool(file.stat().mtime >= int(self.begun))  # an object store counts seconds
        return Path(file).stat().st_mtime >= self.begun

    @property
    def broadcast(self) -> bool:
        """Whether Orbax has sent arrays from one replica to others."""
        return any(event == _BROADCAST for event, _ in self.heard)


Rule = Callable[[Any, OptionEvidence], ProvenEffect]
_Read = Callable[[StoredCheckpoint], bool | None]


def unproved(why: str) -> ProvenEffect:
    """Returns the finding that nothing tells, and why."""
    return ProvenEffect("not proved", why)


def _judged(holds: bool, proof: str) -> ProvenEffect:
    return ProvenEffect("in effect" if holds else "not in effect", proof)


def _only_if(holds: bool, proof: str) -> ProvenEffect:
    """Returns a finding of what, where it does not hold, proves nothing."""
    return ProvenEffect("in effect", proof) if holds else unproved(proof)


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
    return _judged(value == bool(asked), proofs[0] if value else proofs[1])


def _described(tree: StoredCheckpoint) -> list[ZarrArray]:
    """Returns what Zarr's metadata say of the first arrays of a tree."""
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
    return _judged(
        found == {asked}, f"floating-point arrays on storage: {', '.join(sorted(found))}"
    )


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
    return _only_if(max(parts) == asked, f"an array was saved in {max(parts)} shards")


def _replica_parallel(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"host memory with options: use_replica_parallel=(\w+)")
    if len(found) == 1:
        said = found.pop().lower()
        proof = f"Orbax's log says of its transfers use_replica_parallel={said}"
        return _judged(said == str(bool(asked)).lower(), proof)
    return _by_label(asked, evidence, "use_replica_parallel")


def _by_label(asked: Any, evidence: OptionEvidence, name: str) -> ProvenEffect:
    found = evidence.labels(name)
    if not found:
        return unproved(f"Orbax fired no event with the label {name}")
    if len(found) > 1:
        return unproved(f"Orbax made array handlers with and without {name}")
    holds = found == {str(bool(asked)).lower()}
    return _judged(holds, f"Orbax's event {_HANDLER} says {name}={found.pop()}")


def _separate_folder(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if any(tree.has_replica_folders for tree in evidence.trees):
        return _judged(bool(asked), "there are directories ocdbt.process_replica_*")
    found = _by_label(asked, evidence, "enable_replica_parallel_separate_folder")
    if asked and found.state == "in effect":
        return unproved("Orbax was told so, and no replica had a part of an array to write")
    if not asked and evidence.trees:
        return ProvenEffect("in effect", "there are no directories ocdbt.process_replica_*")
    return found


def _broadcast(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    kinds = evidence.labels("type")
    if evidence.broadcast:
        return _judged(bool(asked), f"Orbax's event {_BROADCAST} was heard")
    loaded = evidence.said("Started (load) checkpoint") or evidence.counts.keys() & _LOADS
    if not kinds or not loaded:
        return unproved("nothing was loaded, or Orbax fired no event of its array handlers")
    if kinds == {"arrayhandler"}:
        proof = "Orbax made handlers of type ArrayHandler only, and no broadcast was heard"
        return _judged(not asked, proof)
    return unproved("Orbax made a handler that broadcasts, and no broadcast was heard")


def _async(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is not None and "save" in evidence.counts:
        background = "save_background" in evidence.counts
        proof = "the save has a part in the background" if background else "all of the save blocks"
        return _judged(background == bool(asked), f"{proof}, by the operations measured")
    found = evidence.said(r"\[(a?sync)\] Started save checkpoint")
    if asked is None or not evidence.counts["save_blocking"] or len(found) != 1:
        return unproved("no save was measured that it could hold for")
    (kind,) = found  # Orbax's managers may save in the background and wait
    holds = (kind == "async") == bool(asked)
    return _only_if(holds, f"Orbax's log says [{kind}] of its saves")


def _async_by_first_name(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if evidence.options.get("enable_async_save") is not None:
        return unproved("enable_async_save is given, and decides")
    return _async(asked, evidence)


def _async_by_second_name(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("null leaves it to async_enabled")
    return _async(asked, evidence)


def _async_load(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = "load_blocking" in evidence.counts
    proof = "the load has a part that blocks" if found else "all of the load blocks"
    return _judged(found == bool(asked), f"{proof}, by the operations measured")


def _limit(key: str) -> Rule:
    pattern = rf"(?<![a-z_]){key}[:=] ?(None|\d+)"

    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        found = evidence.said(pattern)
        if not found:
            return unproved(f"Orbax's log line on {key} was not seen")
        # Releases and interfaces of Orbax differ in what a GB is.
        wanted = {"None"} if asked is None else {str(int(asked * unit)) for unit in (_GIB, _GB)}
        said = f"Orbax's log says {key}: {', '.join(sorted(found))}"
        if found & wanted:
            return ProvenEffect("in effect", said)
        return unproved(said) if asked is None else ProvenEffect("not in effect", said)

    return rule


def _transfer_limit(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"`device_host_max_bytes` was set to ([\d.]+ \w+)")
    said = f"Orbax's log says of its copies off the devices a limit of {', '.join(sorted(found))}"
    if asked is None:
        return _judged(not found, said if found else "Orbax's log names no limit of its copies")
    if evidence.options.get("regulator_max_gb") is not None:
        return unproved("the regulator sets the limit")
    if not found:
        return ProvenEffect(
            "not in effect",
            "Orbax copied all arrays before the save went on; background_keys names those that "
            "wait for the limit",
        )
    return _judged(found <= {_binary(int(asked * unit)) for unit in (_GIB, _GB)}, said)


def _binary(number: float) -> str:
    """Returns a number of bytes as Orbax's log has it."""
    for unit in ("Bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number} {unit}" if unit == "Bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def _in_background(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"Scheduling serialization of \d+ deprioritized arrays.*keys: \[(.+)\]")
    if asked is None:
        return _judged(not found, "Orbax's log names no array that was copied in the background")
    proof = f"Orbax's log says that it copied in the background {', '.join(sorted(found))}"
    return _only_if(bool(found), proof if found else "no array was copied in the background")


def _regulator(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"MemoryRegulated: Updated device_host_concurrent_bytes to ([\d.]+ \w+)")
    if not found:
        return _judged(asked is None, "Orbax's log says of no save that it regulated the limit")
    proof = f"Orbax's log says that it regulated the limit to {', '.join(sorted(found))}"
    return _judged(asked is not None, proof)


def _transfers(key: str) -> Rule:
    """Returns a rule by the settings that Orbax logs of its copies off the devices."""

    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        found = evidence.said(rf"host memory with options:.* {key}=(\w+)")
        if not found:
            return unproved("Orbax copied no array off a device")
        proof = f"Orbax's log says of its copies {key}={', '.join(sorted(found))}"
        if asked is None:  # v0 says what it took for it
            return _only_if(found == {"None"}, proof)
        return _judged(found == {str(asked)}, proof)

    return rule


def _host_arrays(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    copied = any("Transferring arrays to host memory" in line for line in evidence.lines)
    said = "copied arrays off a device" if copied else "copied no array off a device"
    return _judged(copied != bool(asked), f"by its log Orbax {said}")


def _merge_validation(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"Pytree save finalize.* enable_post_merge_validation=(\w+)")
    if not found:
        return unproved("Orbax's log line on the end of a save was not seen")
    proof = f"Orbax's log says enable_post_merge_validation={', '.join(sorted(found))}"
    return _judged(found == {str(asked)}, proof)


def _file_size(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    sizes = [
        size
        for tree in evidence.trees
        for file, size in tree.sizes.items()
        if file.parent.name == "d" and file.parts[0].startswith("ocdbt.process_")
    ]
    proof = f"{len(sizes)} data files, of at most {max(sizes, default=0)} bytes"
    # A file is ended with the write that reaches the size.
    return _only_if(bool(asked) and len(sizes) > 1, proof)


def _sharding_file(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if not evidence.trees:
        return unproved("the repeat left no tree of arrays")
    found = any(file.name == "_sharding" for tree in evidence.trees for file in tree.sizes)
    return _judged(found == bool(asked), f"there is {'a' if found else 'no'} file _sharding")


def _permissions(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None or "://" in str(evidence.directory):
        return unproved("null leaves it to the umask, and a bucket has no modes")
    found = {f"{Path(each).stat().st_mode & 0o777:o}" for each in evidence.checkpoints}
    proof = f"mode of the checkpoint's folder: {', '.join(sorted(found))}"
    return _only_if(found == {asked.lstrip("0")}, proof)


def _commit(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    folders = {str(each) for each in evidence.checkpoints}
    renamed = evidence.said(r"^Renaming .+ to (.+)$") & folders
    finalized = evidence.said(r"^Finalizing (.+)$") & folders
    if asked == "auto" or bool(renamed) == bool(finalized):
        return unproved("auto leaves it to the storage, or Orbax's log line was not seen")
    found = "atomic_rename" if renamed else "commit_file"
    proof = f"by its log Orbax {'renamed' if renamed else 'wrote in'} the checkpoint's folder"
    return _judged(found == asked, proof)


def _colocated(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.labels("dispatcher")
    proof = f"Orbax's event {_HANDLER} says dispatcher={', '.join(sorted(found))}"
    if not found:
        return unproved("Orbax fired no event that names its dispatcher")
    return _only_if(bool(found - {"none"}) if asked else found == {"none"}, proof)


def _manager(*patterns: str, persistent: bool = False) -> Rule:
    """Returns a rule by the settings that Orbax logs of its managers; the first pattern counts."""

    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        tier = re.compile(f"root_directory={re.escape(str(evidence.directory))}/persistent[/:]")
        created = [line for line in evidence.lines if "CheckpointManager created" in line]
        lines = [line for line in created if bool(tier.search(line)) == persistent]
        for pattern in patterns:
            found = {text for line in lines for text in re.findall(pattern, line)}
            if found:
                name = re.split(r"[\\(=]", pattern)[0]
                proof = f"Orbax's log says of its manager {name}: {', '.join(sorted(found))}"
                return _judged(found == {str(asked)}, proof)
        return unproved("Orbax's log line on such a manager was not seen")

    return rule


def _best(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    has_loss = any(matching(evidence.directory, "steps/*/metrics/metrics"))
    if asked is None or not has_loss:
        said = "a loss was saved" if has_loss else "no loss was saved"
        return _judged(has_loss == (asked is not None), f"{said} with the checkpoints")
    return _manager(r"best_mode=.(\w+)")(asked, evidence)


def _moved(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("null deletes, which leaves no trace")
    moved = [step.name for step in matching(evidence.directory, f"steps/{asked}/*")]
    return _judged(bool(moved), f"steps that were moved to {asked}: {', '.join(sorted(moved))}")


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


def _policies(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    text = " ".join(line for line in evidence.lines if "CheckpointManager created" in line)
    policies = [*asked.get("preservation_policies", ()), *asked.get("save_decision_policies", ())]
    for policy in policies:
        given = [value for key, value in policy.items() if key != "policy_type"]
        numbers = re.findall(r"\d+", json.dumps(given))
        named = re.findall(rf"\b{policy['policy_type']}\(([^()]*)\)", text)
        if not any(re.findall(r"\d+", found) == numbers for found in named):
            return unproved(f"Orbax's log line on its manager does not show {policy}")
    shown = ", ".join(re.findall(r"\b[A-Z]\w+\([^()]*=\d[^()]*\)", text))
    return ProvenEffect("in effect", f"Orbax's log says of its manager {shown}")


def _counted(what: str, count: Callable[[OptionEvidence], int]) -> Rule:
    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        found = count(evidence)
        return _judged(found == asked, f"{what}: {found}")

    return rule


def _offered(evidence: OptionEvidence) -> int:
    counts = evidence.counts
    if trained := counts["train_step"] or counts["step"] or evidence.steps("train"):
        return trained
    offered = counts["save"] + counts["skip"]
    return offered // _SOURCES if "restore_from_peer" in counts else offered


def _steps_during(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.steps("steps_during")
    if found < asked:
        return unproved(f"the save had ended after {found} steps beside it")
    return _judged(found == asked, f"{found} steps were taken beside the save")


def _trees(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = len(evidence.trees)  # of many, not all are looked at
    return _only_if(found == asked, f"{found} trees of arrays lie on storage")


def _pieces(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.counts["save_piece"]
    return _judged(found == (asked or 0), f"pieces that were saved: {found}")


def _share(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    part, whole = (
        sum(one.value for one in evidence.samples if (one.operation, one.metric) == (name, _READ))
        for name in ("load_part", "load")
    )
    if not part or not whole:
        return unproved("Orbax fired no event on the bytes that it loaded")
    # Arrays are loaded whole, so that it is the asked share or less. Replicas may count apart.
    return _only_if(part / whole <= asked, f"Orbax loaded {part / whole:.1%} of the bytes")


def _read_chunk(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    read, blocks, requests = (
        sum(one.value for one in evidence.samples if one.metric == f"6_io/{name}")
        for name in ("file_bytes_read_per_host", "file_reads_per_host_count", _REQUESTS)
    )
    proof = f"Orbax read {read:.0f} bytes in {requests:.0f} requests"
    if asked is None or not requests > blocks:
        return unproved(f"{proof}, none of which is a part of a block")
    return _judged(read / requests <= asked * _MIB, proof)


def _cancelled(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.counts.keys() & {"cancel", "cancel_too_late"}
    proof = f"{', '.join(found)} was measured" if found else "no cancellation was measured"
    return _judged(bool(found) == bool(asked), proof)


def _cache_of_programs(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = (evidence.directory / "compilation_cache").exists()
    if asked != "off" and not found:
        return unproved("JAX has compiled nothing that this process had not compiled before")
    if asked == "cold":
        return unproved("cold and warm differ only in the life after a kill")
    proof = "JAX has written programs to compilation_cache" if found else "JAX has kept no program"
    return _judged(found == (asked != "off"), proof)


def _tier(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = "storage"
    if any("Configured emergency" in line for line in evidence.lines):
        found = "local"
    elif not (evidence.directory / "steps").exists():
        found = "replicator"
    return _judged(found == asked, f"by its folders and Orbax's log the job saved to {found}")


def _loaded(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"Started load checkpoint @ (.+)\.$")
    if not found:
        return unproved("Orbax's log line on a load was not seen")
    root = str(evidence.directory if asked is None else absolute(asked))
    below = [path.startswith(root) for path in found]  # its own checkpoint is verified by a load
    proof = f"Orbax's log says that it loads {', '.join(sorted(found))}"
    return _only_if(all(below) if asked is None else any(below), proof)


def _captured(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        return unproved("null asks for nothing")
    file = absolute(asked) / _DIGESTS
    if file.exists() and evidence.wrote(file):
        return ProvenEffect("in effect", f"{file} was written")
    return unproved(f"{file} was not written in this repeat")


def _one_host_lists(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if "reload" not in evidence.counts:
        return unproved("no manager has listed its steps")
    found = any("[single_host_load_and_broadcast]" in line for line in evidence.lines)
    proof = "Orbax's log names single_host_load_and_broadcast"
    return _judged(found == bool(asked), proof if found else proof.replace("names", "never names"))


def _broadcast_limit(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    numbers = evidence.said(r"Total number of broadcasts: (\d+)")
    asks_memory = any("Using available memory" in line for line in evidence.lines)
    if not numbers:
        return unproved("Orbax's log line on broadcasts was not seen")
    proof = f"Orbax's log says that it took {', '.join(numbers)} broadcasts"
    if asked is None:
        return _judged(asks_memory, f"{proof}, and asked for free memory: {asks_memory}")
    if asks_memory:
        return ProvenEffect("not in effect", f"{proof}, by free memory")
    if numbers == {"1"}:
        return unproved(f"{proof}: all fitted")
    return ProvenEffect("in effect", proof)


def _files_of_first(evidence: OptionEvidence) -> tuple[int, str]:
    """Returns how many files the first process has written, and says so."""
    files = len([*matching(evidence.directory, "ckpt/__0_*.distcp")])
    return files, f"the first process has written {files} files"


def _single_file(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    files, proof = _files_of_first(evidence)
    if evidence.options["save_thread_count"] != 1:
        return unproved(proof)
    return _judged((files == 1) == bool(asked), proof)


def _threads(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    files, proof = _files_of_first(evidence)
    if not evidence.options["single_file_per_rank"]:
        return unproved(f"{proof}, one for each tensor, whatever the number of threads")
    return _only_if(files == asked, proof)


def _traced(evidence: OptionEvidence, below: str) -> bool:
    """Tells whether the profiler has written traces of the point, which warm-ups are for."""
    files = f"{evidence.traces.name}__*/{below}plugins/profile/*/*.xplane.pb"
    return any(matching(evidence.traces.parent, files))


def _trace(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if not _traced(evidence, "") and not _traced(evidence, "warmup_*/"):
        return _only_if(not asked, "there are no traces of the point")
    proof = "there are traces of the point"
    return _only_if(asked, proof if asked else f"{proof}, by another option")


def _trace_each(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    each = _traced(evidence, "warmup_*/")
    if not each and not _traced(evidence, ""):
        return unproved("there are no traces of the point")
    said = "each" if each else "one"
    return _only_if(each == bool(asked), f"there are traces of {said} traced warm-up")


def _tracemalloc(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = any(sample.metric == _TRACEMALLOC for sample in evidence.samples)
    return _judged(found == bool(asked), f"{_TRACEMALLOC} was {'' if found else 'not '}measured")


class Proof(NamedTuple):
    """How an option is proved."""

    by: str  # where that is read, for people
    rule: Rule  # what reads it


_LOG: Final = "Orbax's log"
_EVENTS: Final = "Orbax's events"
_FILES: Final = "files"
_SAMPLES: Final = "operations measured"

PROOFS: Final[Mapping[str, Proof]] = MappingProxyType(
    {
        "async_enabled": Proof(f"{_SAMPLES}, {_LOG}", _async_by_first_name),
        "enable_async_save": Proof(_SAMPLES, _async_by_second_name),
        "load_async": Proof(_SAMPLES, _async_load),
        "use_ocdbt": Proof(_FILES, _ocdbt),
        "use_zarr3": Proof(_FILES, _zarr3),
        "use_compression": Proof(_FILES, _compression),
        "use_replica_parallel": Proof(f"{_LOG}, {_EVENTS}", _replica_parallel),
        "enable_replica_parallel_separate_folder": Proof(f"{_FILES}, {_EVENTS}", _separate_folder),
        "use_load_and_broadcast": Proof(_EVENTS, _broadcast),
        "chunk_byte_size": Proof(_FILES, _chunks),
        "save_dtype": Proof(_FILES, _dtype),
        "save_concurrent_gb": Proof(_LOG, _limit("save_concurrent_bytes")),
        "restore_concurrent_gb": Proof(_LOG, _limit("restore_concurrent_bytes")),
        "save_device_host_concurrent_gb": Proof(_LOG, _limit("save_device_host_concurrent_bytes")),
        "device_host_concurrent_gb": Proof(_LOG, _transfer_limit),
        "background_keys": Proof(_LOG, _in_background),
        "regulator_max_gb": Proof(_LOG, _regulator),
        "host_arrays": Proof(_LOG, _host_arrays),
        "enable_pinned_host_transfer": Proof(_LOG, _transfers("enable_pinned_host_transfer")),
        "min_slice_bytes_for_replica_parallel": Proof(
            _LOG, _transfers("min_slice_bytes_for_replica_parallel")
        ),
        "max_replicas_for_replica_parallel": Proof(
            _LOG, _transfers("max_replicas_for_replica_parallel")
        ),
        "ocdbt_target_data_file_size": Proof(_FILES, _file_size),
        "enable_write_sharding_file": Proof(_FILES, _sharding_file),
        "enable_post_merge_validation": Proof(_LOG, _merge_validation),
        "path_permission_mode": Proof(_FILES, _permissions),
        "atomicity": Proof(_LOG, _commit),
        "use_colocated_python": Proof(_EVENTS, _colocated),
        "use_metadata_store": Proof(_FILES, _array_metadata),
        "enable_trace": Proof(_FILES, _trace),
        "trace_every_repeat": Proof(_FILES, _trace_each),
        "enable_xprof": Proof(_FILES, _trace),
        "metric_tracemalloc_enabled": Proof("metrics measured", _tracemalloc),
        "save_interval_steps": Proof(
            _LOG, _manager(r"FixedIntervalPolicy\(interval=(\d+)", r"save_interval_steps=(\w+)")
        ),
        "max_to_keep": Proof(_LOG, _manager(r"LatestN\(n=(\d+)", r"max_to_keep=(\w+)")),
        "local_save_interval_steps": Proof(_FILES, _interval("local/*/process_*")),
        "local_max_to_keep": Proof(_LOG, _manager(r"max_to_keep=(\w+)")),
        "persistent_save_interval_steps": Proof(_FILES, _interval("persistent/*")),
        "persistent_max_to_keep": Proof(_LOG, _manager(r"max_to_keep=(\w+)", persistent=True)),
        "enable_async_checkpointing": Proof(_LOG, _manager(r"enable_async_checkpointing=(\w+)")),
        "keep_period": Proof(_LOG, _manager(r"keep_period=(\w+)")),
        "best_fn": Proof(f"{_FILES}, {_LOG}", _best),
        "enable_background_delete": Proof(_LOG, _manager(r"enable_background_delete=(\w+)")),
        "todelete_subdir": Proof(_FILES, _moved),
        "num_deletion_threads": Proof(_LOG, _manager(r"num_deletion_threads=(\w+)")),
        "checkpoint_policies_options": Proof(_LOG, _policies),
        "train_steps": Proof(_SAMPLES, _counted("steps", _offered)),
        "num_checkpoints": Proof(
            _SAMPLES,
            _counted("steps", lambda found: found.counts["save_blocking"] + found.counts["skip"]),
        ),
        "num_savings": Proof(_SAMPLES, _counted("saves", lambda found: found.counts["save"])),
        "steps_before": Proof(
            _SAMPLES, _counted("steps", lambda found: found.steps("steps_before"))
        ),
        "steps_after": Proof(_SAMPLES, _counted("steps", lambda found: found.steps("steps_after"))),
        "max_steps_during": Proof(_SAMPLES, _steps_during),
        "perform_cancellation": Proof(_SAMPLES, _cancelled),
        "safetensors_read_chunk_mb": Proof(_EVENTS, _read_chunk),
        "tree_items": Proof(_FILES, _trees),
        "pieces": Proof(_SAMPLES, _pieces),
        "loaded_share": Proof(_EVENTS, _share),
        "compilation_cache": Proof(_FILES, _cache_of_programs),
        "tier": Proof(f"{_FILES}, {_LOG}", _tier),
        "reference_checkpoint_path": Proof(_LOG, _loaded),
        "checkpoint_path": Proof(_LOG, _loaded),
        "capture_digests_path": Proof(_FILES, _captured),
        "single_host_load_and_broadcast": Proof(_LOG, _one_host_lists),
        "broadcast_memory_limit_bytes": Proof(_LOG, _broadcast_limit),
        "save_devices": Proof(_FILES, _shards),
        "single_file_per_rank": Proof(_FILES, _single_file),
        "save_thread_count": Proof(_FILES, _threads),
    }
)
"""How each option of the built-in benchmarks is proved; the names mean the same in all of them."""

_LOADS_ONLY: Final = "no save is measured; the checkpoint to load is saved before, and blocks"
_OF_A_FLAG: Final = "a flag of Orbax for the time of the repeat, of which it says nothing"
_OF_MEMORY: Final = "how arrays lie in memory leaves no trace"

NOT_PROVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "matrix_size": "the matrices live inside a step, and show in its time alone",
        "todelete_full_path": "it is refused outside gs://, and moves out of the repeat's folder",
        "expected_surge_gb": "Orbax logs the limit that follows from it, and not the surge",
        "deepcopy_host_arrays": "a copy in memory shows in the peak of memory alone",
        "create_directories_asynchronously": "which thread made a folder leaves no trace",
        "skip_sync_file_validations": "a check that is left out leaves no trace",
        "timeout_secs": "it shows in saves that take longer alone",
        "wiped": "it is about the life after a kill: orbax-bench recovery does it",
        "kill": "it is about a kill: orbax-bench recovery does it",
        "peers_wait_s": "it is about a kill: orbax-bench recovery does it",
        "reference_sharding_path": _OF_MEMORY,
        "sharding_config_path": _OF_MEMORY,
        "reference_digests_path": (
            "a digest that differs fails the repeat, and nothing says which file it came from"
        ),
        "safetensors_max_over_read_ratio": "Orbax's loader of safetensors does not tell it",
        "orbax_load.load_async": "Orbax loads in the background safetensors alone",
        "safetensors_load.restore_concurrent_gb": "Orbax's loader of safetensors does not tell it",
        "safetensors_load.use_load_and_broadcast": "only false is allowed",
        "left_out_by": "the same arrays are loaded either way, and Orbax does not say why",
        "cancel_delay_secs": "it shows in times alone",
        "replica_axis_index": "a mesh fits one value; restored replicas are compared",
        "primary_replica_id": "which replica reads leaves no trace",
        "broadcast_memory_scaling_factor": (
            "Orbax logs how many bytes it takes, and not of how many"
        ),
        "use_distributed_process_id": _OF_A_FLAG,
        "experimental_use_distributed_id_for_mesh_consistency": _OF_A_FLAG,
        "experimental_orbax_use_distributed_process_id": _OF_A_FLAG,
        "inputs": "what a restored model is called with leaves no trace",
        "restore_devices": _OF_MEMORY,
        "training_job.use_load_and_broadcast": (
            "Orbax's Checkpointer of a training makes a handler that broadcasts and leaves it"
        ),
        "emergency_checkpoint_manager.local_max_to_keep": (
            "the first process, whose log is read, saves to persistent storage alone"
        ),
        "resharding.async_enabled": _LOADS_ONLY,
        "restore_and_broadcast.async_enabled": _LOADS_ONLY,
        "training_job.async_enabled": (
            "Orbax's Checkpointer of a training saves in the background and waits where it is false"
        ),
        "pytorch_dcp.reference_checkpoint_path": "PyTorch says nothing of what it reads",
        "save_per_thread_copy_ahead_mb": "PyTorch copies ahead off a GPU alone",
        "enable_plan_caching": "PyTorch keeps a plan in memory, and says nothing of it",
        "cache_staged_state_dict": "true needs CUDA",
        "enable_gcs_connector": "only false is allowed",
        "sync_files": "that a file was synchronized leaves no trace",
        "join_local_shards": "true is needed with several devices, and does nothing with one",
        "mmap": "how a file was read leaves no trace",
        "use_colocated": "only true is allowed",
        "device_count": "where a function ran leaves no trace",
    }
)
"""Why an option, or `benchmark.option`, is not proved."""

NOT_TRIED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lustre": "needs Lustre; the striping that files got is in the notes of the record",
        "snapshotter": "needs Pathways",
        "multihost_dispatchers": "needs cloudpickle, and hosts of devices beside this process",
    }
)
"""Why all options of a benchmark are not proved by any test."""


def prove(benchmark: str, option: str, asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    """Returns what is proven of an option of a built-in benchmark."""
    why = NOT_PROVED.get(f"{benchmark}.{option}")
    proof = PROOFS.get(option)
    if why is None and proof is not None:
        return proof.rule(asked, evidence)
    return unproved(why or NOT_PROVED.get(option, UNKNOWN))


UNKNOWN: Final = "neither files nor events nor logs are known to tell"
