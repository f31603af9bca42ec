"""Rules of options that label the events of Orbax: its array handlers and broadcasts."""

from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.worker.proofs.evidence import (
    BROADCAST,
    EVENTS,
    FILES,
    HANDLER,
    LOG,
    OptionEvidence,
    Proof,
    ProvenEffect,
    judged,
    only_if,
    unproved,
)

_DIRECTORIES: Final = "/jax/orbax/write/{}_directory_creation_secs"
_LOADS: Final = frozenset({"load", "restore"})


def _replica_parallel(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.said(r"host memory with options: use_replica_parallel=(\w+)")
    if len(found) == 1:
        said = found.pop().lower()
        proof = f"Orbax's log says of its transfers use_replica_parallel={said}"
        return judged(said == str(bool(asked)).lower(), proof)
    return _by_label(asked, evidence, "use_replica_parallel")


def _by_label(asked: Any, evidence: OptionEvidence, name: str) -> ProvenEffect:
    found = evidence.labels(name)
    if not found:
        return unproved(f"Orbax fired no event with the label {name}")
    if len(found) > 1:
        return unproved(f"Orbax made array handlers with and without {name}")
    holds = found == {str(bool(asked)).lower()}
    return judged(holds, f"Orbax's event {HANDLER} says {name}={found.pop()}")


def _separate_folder(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    if any(tree.has_replica_folders for tree in evidence.trees):
        return judged(bool(asked), "there are directories ocdbt.process_replica_*")
    found = _by_label(asked, evidence, "enable_replica_parallel_separate_folder")
    if asked and found.state == "in effect":
        return unproved("Orbax was told so, and no replica had a part of an array to write")
    if not asked and evidence.trees:
        return ProvenEffect("in effect", "there are no directories ocdbt.process_replica_*")
    return found


def _broadcast(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    kinds = evidence.labels("type")
    if evidence.broadcast:
        return judged(bool(asked), f"Orbax's event {BROADCAST} was heard")
    loaded = evidence.said("Started (load) checkpoint") or evidence.counts.keys() & _LOADS
    if not kinds or not loaded:
        return unproved("nothing was loaded, or Orbax fired no event of its array handlers")
    if kinds == {"arrayhandler"}:
        proof = "Orbax made handlers of type ArrayHandler only, and no broadcast was heard"
        return judged(not asked, proof)
    return unproved("Orbax made a handler that broadcasts, and no broadcast was heard")


def _directories(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    heard = {event for event, _ in evidence.heard}
    found = [how for how in ("blocking", "background") if _DIRECTORIES.format(how) in heard]
    if len(found) != 1:
        return unproved(f"Orbax fired no event {_DIRECTORIES.format('*')}, or both")
    proof = f"Orbax's event {_DIRECTORIES.format(found[0])} was heard"
    return judged((found == ["background"]) == bool(asked), proof)


def _colocated(asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    found = evidence.labels("dispatcher")
    proof = f"Orbax's event {HANDLER} says dispatcher={', '.join(sorted(found))}"
    if not found:
        return unproved("Orbax fired no event that names its dispatcher")
    return only_if(bool(found - {"none"}) if asked else found == {"none"}, proof)


PROOFS: Final[Mapping[str, Proof]] = {
    "use_replica_parallel": Proof(f"{LOG}, {EVENTS}", _replica_parallel),
    "enable_replica_parallel_separate_folder": Proof(f"{FILES}, {EVENTS}", _separate_folder),
    "use_load_and_broadcast": Proof(EVENTS, _broadcast),
    "create_directories_asynchronously": Proof(EVENTS, _directories),
    "use_colocated_python": Proof(EVENTS, _colocated),
}
"""How options are proved by this, by their names."""
