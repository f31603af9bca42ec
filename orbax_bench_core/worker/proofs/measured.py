"""Rules of options that show in what was measured: operations, steps, bytes."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from orbax_bench_core.worker.proofs.evidence import (
    EVENTS,
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

_TRACEMALLOC: Final = "7_memory/tracemalloc_peak_diff_mb"
_READ: Final = "5_inventory/load_requested_gb"
_MIB: Final = 2**20
_REQUESTS: Final = "storage_reads_per_host_count"
_SOURCES: Final = 3
"""How often `p2p_checkpoint_manager` saves all of its steps."""


def _async(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if asked is not None and "save" in evidence.counts:
        background = "save_background" in evidence.counts
        proof = "the save has a part in the background" if background else "all of the save blocks"
        return judged(background == bool(asked), f"{proof}, by the operations measured")
    found = evidence.said(r"\[(a?sync)\] Started save checkpoint")
    if asked is None or not evidence.counts["save_blocking"] or len(found) != 1:
        return unproved("no save was measured that it could hold for")
    (kind,) = found  # Orbax's managers may save in the background and wait
    holds = (kind == "async") == bool(asked)
    return only_if(holds, f"Orbax's log says [{kind}] of its saves")


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
    return judged(found == bool(asked), f"{proof}, by the operations measured")


def _counted(what: str, count: Callable[[OptionEvidence], int]) -> Rule:
    def rule(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
        found = count(evidence)
        return judged(found == asked, f"{what}: {found}")

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
        return unproved(f"the save had ended after {found} steps during it")
    return judged(found == asked, f"{found} steps were taken during the save")


def _pieces(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.counts["save_piece"]
    return judged(found == (asked or 0), f"pieces that were saved: {found}")


def _share(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    part, whole = (
        sum(one.value for one in evidence.samples if (one.operation, one.metric) == (name, _READ))
        for name in ("load_part", "load")
    )
    if not part or not whole:
        return unproved("Orbax fired no event on the bytes that it loaded")
    # Arrays are loaded whole, so that it is the asked share or less. Replicas may count apart.
    return only_if(part / whole <= asked, f"Orbax loaded {100 * part / whole:.1f} % of the bytes")


def _read_chunk(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    read, blocks, requests = (
        sum(one.value for one in evidence.samples if one.metric == f"6_io/{name}")
        for name in ("file_bytes_read_per_host", "file_reads_per_host_count", _REQUESTS)
    )
    proof = f"Orbax read {read:.0f} bytes in {requests:.0f} requests"
    if asked is None or not requests > blocks:
        return unproved(f"{proof}, none of which is a part of a block")
    return judged(read / requests <= asked * _MIB, proof)


def _deletion(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = "blocking" if "delete" in evidence.counts else None
    if "delete_blocking" in evidence.counts:
        found = "background"
    return judged(found == asked, f"deletions by the operations measured: {found or 'none'}")


def _cancelled(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.counts.keys() & {"cancel", "cancel_too_late"}
    proof = f"{', '.join(found)} was measured" if found else "no cancellation was measured"
    return judged(bool(found) == bool(asked), proof)


def _tracemalloc(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = any(sample.metric == _TRACEMALLOC for sample in evidence.samples)
    return judged(found == bool(asked), f"{_TRACEMALLOC} was {'' if found else 'not '}measured")


PROOFS: Final[Mapping[str, Proof]] = {
    "async_enabled": Proof(f"{SAMPLES}, {LOG}", _async_by_first_name),
    "enable_async_save": Proof(SAMPLES, _async_by_second_name),
    "load_async": Proof(SAMPLES, _async_load),
    "metric_tracemalloc_enabled": Proof("metrics measured", _tracemalloc),
    "train_steps": Proof(SAMPLES, _counted("steps", _offered)),
    "num_checkpoints": Proof(
        SAMPLES,
        _counted("steps", lambda found: found.counts["save_blocking"] + found.counts["skip"]),
    ),
    "num_savings": Proof(SAMPLES, _counted("saves", lambda found: found.counts["save"])),
    "steps_before": Proof(SAMPLES, _counted("steps", lambda found: found.steps("steps_before"))),
    "steps_after": Proof(SAMPLES, _counted("steps", lambda found: found.steps("steps_after"))),
    "max_steps_during": Proof(SAMPLES, _steps_during),
    "deletion": Proof(SAMPLES, _deletion),
    "perform_cancellation": Proof(SAMPLES, _cancelled),
    "safetensors_read_chunk_mb": Proof(EVENTS, _read_chunk),
    "pieces": Proof(SAMPLES, _pieces),
    "loaded_share": Proof(EVENTS, _share),
}
"""How options are proved by this, by their names."""
