"""Rules of options that Orbax tells in its own log: limits, settings of managers, paths."""

import re
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.files import absolute, matching
from orbax_bench_core.worker.proofs.evidence import (
    FILES,
    LOG,
    SAMPLES,
    OptionEvidence,
    Proof,
    ProvenEffect,
    Rule,
    judged,
    only_if,
    unproved,
)

_GIB: Final = 2**30
_GB: Final = 10**9
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
        return judged(not found, said if found else "Orbax's log names no limit of its copies")
    if evidence.options.get("regulator_max_gb") is not None:
        return unproved("the regulator sets the limit")
    if not found:
        return ProvenEffect(
            "not in effect",
            "Orbax copied all arrays before the save went on; background_keys names those that "
            "wait for the limit",
        )
    return judged(found <= {_binary(int(asked * unit)) for unit in (_GIB, _GB)}, said)


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
        return judged(not found, "Orbax's log names no array that was copied in the background")
    proof = f"Orbax's log says that it copied in the background {', '.join(sorted(found))}"
    return only_if(bool(found), proof if found else "no array was copied in the background")


def _regulator(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"MemoryRegulated: Updated device_host_concurrent_bytes to ([\d.]+ \w+)")
    if not found:
        return judged(asked is None, "Orbax's log says of no save that it regulated the limit")
    proof = f"Orbax's log says that it regulated the limit to {', '.join(sorted(found))}"
    return judged(asked is not None, proof)


def _transfers(key: str) -> Rule:
    """Returns a rule by the settings that Orbax logs of its copies off the devices."""

    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        found = evidence.said(rf"host memory with options:.* {key}=(\w+)")
        if not found:
            return unproved("Orbax copied no array off a device")
        proof = f"Orbax's log says of its copies {key}={', '.join(sorted(found))}"
        if asked is None:  # v0 says what it took for it
            return only_if(found == {"None"}, proof)
        return judged(found == {str(asked)}, proof)

    return rule


def _pinned(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = _transfers("enable_pinned_host_transfer")(asked, evidence)
    memories = {each.kind for one in _local_devices() for each in one.addressable_memories()}
    if asked and found.state == "in effect" and "pinned_host" not in memories:
        said = f"the devices have no pinned_host memory: {', '.join(sorted(memories))}"
        return ProvenEffect("not in effect", said)
    return found


def _local_devices() -> list[Any]:
    import jax

    return list(jax.local_devices())


def _host_arrays(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    copied = any("Transferring arrays to host memory" in line for line in evidence.lines)
    said = "copied arrays off a device" if copied else "copied no array off a device"
    return judged(copied != bool(asked), f"by its log Orbax {said}")


def _merge_validation(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"Pytree save finalize.* enable_post_merge_validation=(\w+)")
    if not found:
        return unproved("Orbax's log line on the end of a save was not seen")
    proof = f"Orbax's log says enable_post_merge_validation={', '.join(sorted(found))}"
    return judged(found == {str(asked)}, proof)


def _commit(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    folders = {str(each) for each in evidence.checkpoints}
    renamed = evidence.said(r"^Renaming .+ to (.+)$") & folders
    finalized = evidence.said(r"^Finalizing (.+)$") & folders
    if asked == "auto" or bool(renamed) == bool(finalized):
        return unproved("auto leaves it to the storage, or Orbax's log line was not seen")
    found = "atomic_rename" if renamed else "commit_file"
    proof = f"by its log Orbax {'renamed' if renamed else 'wrote in'} the checkpoint's folder"
    return judged(found == asked, proof)


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
                return judged(found == {str(asked)}, proof)
        return unproved("Orbax's log line on such a manager was not seen")

    return rule


def _best(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    has_loss = any(matching(evidence.directory, "steps/*/metrics/metrics"))
    if asked is None or not has_loss:
        said = "a loss was saved" if has_loss else "no loss was saved"
        return judged(has_loss == (asked is not None), f"{said} with the checkpoints")
    return _manager(r"best_mode=.(\w+)")(asked, evidence)


def _reopened(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is None:
        opened = "create_checkpoint_manager" in evidence.counts
        return judged(not opened, f"a manager was {'' if opened else 'not '}opened once more")
    return _manager(r"lightweight_initialize=(\w+)")(asked, evidence)


def _policies(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    from orbax_bench_core.benchmarks.checkpoint_policy import Policies

    said = " ".join(line for line in evidence.lines if "CheckpointManager created" in line)
    policies = Policies.from_dict(asked)
    made = [
        repr(policy.make())
        for policy in (*policies.preservation_policies, *policies.save_decision_policies)
    ]
    for each in made:
        if each not in said:
            return unproved(f"Orbax's log line on its manager does not show {each}")
    return ProvenEffect("in effect", f"Orbax's log says of its manager {', '.join(made)}")


def _tier(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = "storage"
    if any("Configured emergency" in line for line in evidence.lines):
        found = "local"
    elif not (evidence.directory / "steps").exists():
        found = "replicator"
    return judged(found == asked, f"by its folders and Orbax's log the job saved to {found}")


def _loaded(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"Started load checkpoint @ (.+)\.$")
    if not found:
        return unproved("Orbax's log line on a load was not seen")
    root = str(evidence.directory if asked is None else absolute(asked))
    below = [path.startswith(root) for path in found]  # its own checkpoint is verified by a load
    proof = f"Orbax's log says that it loads {', '.join(sorted(found))}"
    return only_if(all(below) if asked is None else any(below), proof)


def _one_host_lists(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if "reload" not in evidence.counts:
        return unproved("no manager has listed its steps")
    found = any("[single_host_load_and_broadcast]" in line for line in evidence.lines)
    proof = "Orbax's log names single_host_load_and_broadcast"
    return judged(found == bool(asked), proof if found else proof.replace("names", "never names"))


def _broadcast_limit(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    numbers = evidence.said(r"Total number of broadcasts: (\d+)")
    asks_memory = any("Using available memory" in line for line in evidence.lines)
    if not numbers:
        return unproved("Orbax's log line on broadcasts was not seen")
    proof = f"Orbax's log says that it took {', '.join(numbers)} broadcasts"
    if asked is None:
        return judged(asks_memory, f"{proof}, and asked for free memory: {asks_memory}")
    if asks_memory:
        return ProvenEffect("not in effect", f"{proof}, by free memory")
    if numbers == {"1"}:
        return unproved(f"{proof}: all fitted")
    return ProvenEffect("in effect", proof)


PROOFS: Final[Mapping[str, Proof]] = {
    "save_concurrent_gb": Proof(LOG, _limit("save_concurrent_bytes")),
    "restore_concurrent_gb": Proof(LOG, _limit("restore_concurrent_bytes")),
    "save_device_host_concurrent_gb": Proof(LOG, _limit("save_device_host_concurrent_bytes")),
    "device_host_concurrent_gb": Proof(LOG, _transfer_limit),
    "background_keys": Proof(LOG, _in_background),
    "regulator_max_gb": Proof(LOG, _regulator),
    "host_arrays": Proof(LOG, _host_arrays),
    "enable_pinned_host_transfer": Proof(LOG, _pinned),
    "min_slice_bytes_for_replica_parallel": Proof(
        LOG, _transfers("min_slice_bytes_for_replica_parallel")
    ),
    "max_replicas_for_replica_parallel": Proof(
        LOG, _transfers("max_replicas_for_replica_parallel")
    ),
    "enable_post_merge_validation": Proof(LOG, _merge_validation),
    "atomicity": Proof(LOG, _commit),
    "save_interval_steps": Proof(
        LOG, _manager(r"FixedIntervalPolicy\(interval=(\d+)", r"save_interval_steps=(\w+)")
    ),
    "max_to_keep": Proof(LOG, _manager(r"LatestN\(n=(\d+)", r"max_to_keep=(\w+)")),
    "local_max_to_keep": Proof(LOG, _manager(r"max_to_keep=(\w+)")),
    "persistent_max_to_keep": Proof(LOG, _manager(r"max_to_keep=(\w+)", persistent=True)),
    "enable_async_checkpointing": Proof(LOG, _manager(r"enable_async_checkpointing=(\w+)")),
    "keep_period": Proof(LOG, _manager(r"keep_period=(\w+)")),
    "lightweight_initialize": Proof(f"{SAMPLES}, {LOG}", _reopened),
    "enable_per_process_directory_creation": Proof(
        LOG, _manager(r"enable_per_process_directory_creation=(\w+)")
    ),
    "best_fn": Proof(f"{FILES}, {LOG}", _best),
    "enable_background_delete": Proof(LOG, _manager(r"enable_background_delete=(\w+)")),
    "num_deletion_threads": Proof(LOG, _manager(r"num_deletion_threads=(\w+)")),
    "checkpoint_policies_options": Proof(LOG, _policies),
    "tier": Proof(f"{FILES}, {LOG}", _tier),
    "reference_checkpoint_path": Proof(LOG, _loaded),
    "checkpoint_path": Proof(LOG, _loaded),
    "single_host_load_and_broadcast": Proof(LOG, _one_host_lists),
    "broadcast_memory_limit_bytes": Proof(LOG, _broadcast_limit),
}
"""How options are proved by this, by their names."""
