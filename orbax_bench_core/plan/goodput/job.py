"""A job and its checkpoints: costs, failures and devices, in seconds."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Final

from orbax_bench_core.errors import UserError

_UNITS: Final = {
    "": 1.0,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(ms|s|min|m|h|d)?")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalTier:
    """Checkpoints on the local disks of hosts, beside those on storage.

    Attributes:
        blocking_s: Seconds that training waits for a local save.
        recovery_s: Seconds from a failure until training goes on from a local checkpoint.
        share: Share of failures after which local checkpoints are still there, 0 to 1.
    """

    blocking_s: float
    recovery_s: float
    share: float

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        _check(self, {"blocking_s": 0.0, "recovery_s": 0.0})
        if not 0 < self.share < 1:
            raise UserError(
                f"the share of failures that local checkpoints survive lies between 0 and 1, got "
                f"{self.share:g}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Facts of a job that decide its goodput.

    Attributes:
        mtbf_s: Mean seconds between failures of the whole job.
        blocking_s: Seconds that training waits for a save that goes on in the background.
        background_s: Seconds of its background part.
        slowdown: Share of the speed of training that is lost meanwhile, 0 to 1.
        save_s: Seconds of a save that blocks as a whole.
        recovery_s: Seconds from a failure until training goes on from storage: to notice it, to
            start again and to restore.
        local: Checkpoints on local disks; None without.
        step_s: Seconds of a training step; None where it does not matter.
        devices: Accelerators of the job; None where no hours are asked for.
    """

    mtbf_s: float
    blocking_s: float
    background_s: float
    slowdown: float
    save_s: float
    recovery_s: float
    local: LocalTier | None = None
    step_s: float | None = None
    devices: int | None = None

    def __post_init__(self) -> None:
        """Refuses numbers out of range."""
        least = dict.fromkeys(("blocking_s", "background_s", "slowdown", "recovery_s"), 0.0)
        _check(self, least)
        for name in ("mtbf_s", "save_s"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise UserError(f"{name} must be more than 0 seconds, got {value:g}")
        if self.slowdown >= 1:
            raise UserError(f"slowdown is a share below 1, got {self.slowdown:g}")


def _check(found: Any, least: dict[str, float]) -> None:
    for name, lowest in least.items():
        value = getattr(found, name)
        if not lowest <= value < math.inf:
            raise UserError(f"{name} must be {lowest:g} or more, got {value:g}")


def seconds_of(text: str, flag: str) -> float:
    """Reads a duration such as `90`, `90s`, `15min`, `4h` or `2d`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UserError(f"{flag}: expected a duration such as 90s, 15min, 4h or 2d, got {text!r}")
    return float(match[1]) * _UNITS[match[2] or ""]
