"""A job from what is known of it: given numbers first, then its log, then its checkpoint."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.inventory import read_checkpoint
from orbax_bench_core.plan.goodput.job import Job, LocalTier
from orbax_bench_core.plan.goodput.log import JobLog
from orbax_bench_core.plan.trees import saved_mesh, tree_of_stored

_FLAGS: Final = {
    "mtbf_s": "--mtbf",
    "blocking_s": "--save-blocking",
    "background_s": "--save-background",
    "slowdown": "--slowdown",
    "recovery_s": "--recovery",
}
_LOCAL: Final = ("local_blocking_s", "local_recovery_s", "local_share")
_LOCAL_FLAGS: Final = ("--local-save", "--local-recovery", "--local-share")


@dataclasses.dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """Facts of a job from its checkpoint; None stands for what that does not say.

    Attributes:
        num_bytes: Bytes of its arrays.
        devices: Devices of the mesh that it was saved from.
        hosts: Processes that wrote it.
        save_s: Seconds from the begin of its save to its commit.
    """

    num_bytes: int
    devices: int | None
    hosts: int | None
    save_s: float | None


def checkpoint_facts(path: str) -> CheckpointFacts:
    """Reads what a checkpoint says of the job that saved it, from its metadata."""
    stored = read_checkpoint(path)
    mesh, tree = saved_mesh(stored), tree_of_stored(stored)
    devices = None if mesh is None else mesh.num_devices
    return CheckpointFacts(tree.num_bytes, devices, stored.processes, stored.save_s)


def job_of(
    given: Mapping[str, float | None],
    log: JobLog | None = None,
    checkpoint: CheckpointFacts | None = None,
) -> Job:
    """Puts a job together."""
    known = {name: value for name, value in given.items() if value is not None}
    found = _defaults(known, log, checkpoint) | known
    missing = [flag for name, flag in _FLAGS.items() if name not in found]
    if missing:
        read = [name for name, it in (("log", log), ("checkpoint", checkpoint)) if it is not None]
        where = f"the {' and the '.join(read)} do not say it: " if read else ""
        raise UserError(f"{where}give {', '.join(missing)}")
    local = [known.get(name) for name in _LOCAL]
    if any(value is not None for value in local) and None in local:
        lacking = [flag for flag, v in zip(_LOCAL_FLAGS, local, strict=True) if v is None]
        raise UserError(f"a local tier needs {', '.join(lacking)} as well")
    devices = found.get("devices")
    return Job(
        mtbf_s=found["mtbf_s"],
        blocking_s=found["blocking_s"],
        background_s=found["background_s"],
        slowdown=found["slowdown"],
        save_s=found.get("save_s", found["blocking_s"] + found["background_s"]),
        recovery_s=found["recovery_s"],
        local=None if local[0] is None else _tier(local),
        step_s=found.get("step_s"),
        devices=None if devices is None else int(devices),
    )


def _tier(values: list[float | None]) -> LocalTier:
    blocking, recovery, share = values
    assert blocking is not None
    assert recovery is not None
    assert share is not None
    return LocalTier(blocking_s=blocking, recovery_s=recovery, share=share)


def _defaults(
    known: Mapping[str, float], log: JobLog | None, checkpoint: CheckpointFacts | None
) -> dict[str, float]:
    found: dict[str, float | None] = {}
    if "host_mtbf_s" in known:
        hosts = known.get("hosts") or (checkpoint.hosts if checkpoint else None)
        if not hosts:
            raise UserError("--host-mtbf needs --hosts: a job fails when one of its hosts does")
        found["mtbf_s"] = known["host_mtbf_s"] / hosts
    if log is not None:
        found |= {"step_s": log.step_s, "blocking_s": log.blocking_s, "recovery_s": log.recovery_s}
        found.setdefault("mtbf_s", log.mtbf_s)
    if checkpoint is not None:
        found["devices"] = checkpoint.devices
        if checkpoint.save_s is not None:
            blocking = known.get("blocking_s", found.get("blocking_s") or 0.0)
            found["background_s"] = max(0.0, checkpoint.save_s - blocking)
    if known.get("background_s", found.get("background_s")) == 0:
        found["slowdown"] = 0.0  # nothing goes on in the background
    return {name: value for name, value in found.items() if value is not None}
