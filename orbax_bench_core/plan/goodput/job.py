"""A job and its checkpoints: costs, failures and devices, in seconds."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.inventory import read_checkpoint
from orbax_bench_core.plan.goodput.log import JobLog
from orbax_bench_core.plan.trees import saved_mesh, tree_of_stored

_UNITS: Final = {"ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(ms|s|min|m|h|d)?")


@dataclasses.dataclass(frozen=True)
class LocalTier:
    """Checkpoints on the local disks of hosts, beside those on storage."""

    blocking_s: float  # seconds that training waits for a local save
    recovery_s: float  # seconds from a failure until training goes on from a local checkpoint
    share: float  # share of failures after which local checkpoints are still there, 0 to 1

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check(self, "blocking_s", "recovery_s")
        if not 0 < self.share < 1:
            raise UserError(
                "the share of failures that local checkpoints survive is between 0 and 1, got "
                f"{self.share:g}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Facts of a job that decide its goodput."""

    mtbf_s: float  # mean seconds between failures of the whole job
    blocking_s: float  # seconds that training waits for a save that goes on in the background
    background_s: float  # seconds of its background part
    slowdown: float  # share of the speed of training that is lost meanwhile, 0 to 1
    save_s: float  # seconds of a save that blocks as a whole
    # seconds from a failure until training goes on from storage: to notice it, to start again and
    # to restore
    recovery_s: float
    local: LocalTier | None = None  # checkpoints on local disks; None without
    step_s: float | None = None  # seconds of a training step; None if it does not matter
    devices: int | None = None  # accelerators of the job; None if no hours are asked for

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check(self, "blocking_s", "background_s", "slowdown", "recovery_s")
        for name in ("mtbf_s", "save_s", "step_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"{name} must be more than 0 seconds, got {value:g}")
        if self.slowdown >= 1:
            raise UserError(f"slowdown is a share below 1, got {self.slowdown:g}")


def _check(found: Any, *names: str) -> None:
    for name in names:
        if not 0 <= (value := getattr(found, name)) < math.inf:
            raise UserError(f"{name} must be 0 or more, got {value:g}")


def seconds_of(text: str, flag: str) -> float:
    """Returns the seconds of a duration such as `90`, `90s`, `15min`, `4h` or `2d`.

    Raises:
        UserError: It is no duration; the message names `flag`.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{flag}: expected a duration such as 90s, 15min, 4h or 2d, got {text!r}")
    return float(match[1]) * _UNITS[match[2] or "s"]


_FLAGS: Final = {
    "mtbf_s": "--mtbf",
    "blocking_s": "--save-blocking",
    "background_s": "--save-background",
    "slowdown": "--slowdown",
    "recovery_s": "--recovery",
}
_LOCAL: Final = {
    "local_blocking_s": "--local-save",
    "local_recovery_s": "--local-recovery",
    "local_share": "--local-share",
}


@dataclasses.dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """Facts of a job from its checkpoint; None stands for what that does not say."""

    num_bytes: int  # bytes of its arrays
    devices: int | None  # devices of the mesh that it was saved from
    hosts: int | None  # processes that wrote it
    save_s: float | None  # seconds from the begin of its save to its commit


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
    """Puts a job together from what is given, and where that lacks a field from the others.

    Args:
        given: Fields of `Job` and `LocalTier` by name, in seconds; None for one that is not given.
        log: What a job's log says.
        checkpoint: What a checkpoint of the job says.

    Raises:
        UserError: Something is known of none of them; the message has the flags that give it.
    """
    known = {name: value for name, value in given.items() if value is not None}
    found = _defaults(known, log, checkpoint) | known
    missing = [flag for name, flag in _FLAGS.items() if name not in found]
    if missing:
        read = [name for name, it in (("log", log), ("checkpoint", checkpoint)) if it is not None]
        do = "does" if len(read) == 1 else "do"
        where = f"the {' and the '.join(read)} {do} not say it: " if read else ""
        raise UserError(f"{where}give {', '.join(missing)}")
    lacking = [flag for name, flag in _LOCAL.items() if name not in known]
    if 0 < len(lacking) < len(_LOCAL):
        raise UserError(f"a local tier needs {', '.join(lacking)} as well")
    local = None if lacking else LocalTier(*(known[name] for name in _LOCAL))
    devices = found.get("devices")
    return Job(
        **{name: found[name] for name in _FLAGS},
        save_s=found.get("save_s", found["blocking_s"] + found["background_s"]),
        local=local,
        step_s=found.get("step_s"),
        devices=None if devices is None else int(devices),
    )


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
        found |= {
            "step_s": log.step_s or None,
            "blocking_s": log.blocking_s,
            "recovery_s": log.recovery_s,
        }
        found.setdefault("mtbf_s", log.mtbf_s)
    if checkpoint is not None:
        found["devices"] = checkpoint.devices
        if checkpoint.save_s is not None:
            blocking = known.get("blocking_s", found.get("blocking_s") or 0.0)
            found["background_s"] = max(0.0, checkpoint.save_s - blocking)
    if known.get("background_s", found.get("background_s")) == 0:
        found["slowdown"] = 0.0  # nothing goes on in the background
    return {name: value for name, value in found.items() if value is not None}
