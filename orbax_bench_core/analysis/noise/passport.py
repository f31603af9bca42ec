"""Noise passport: noise per operation, size class, storage and machine; its file and look-ups."""

import datetime
import math
from pathlib import Path
from typing import Final, Literal

from orbax_bench_core.baselines import read_model, registry_path
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.files import ResultModel, user_cache, write_atomically
from orbax_bench_core.sweep import SweepEntry, baseline_point, sides

PASSPORT_VERSION: Final = 1

_STEP: Final = 4
"""Sizes within a factor of four are one class."""


class Component(ResultModel):
    """Standard deviation between workers, on the log scale, with its 95 % interval."""

    estimate: float  # the estimate; 0 where workers differ by less than their operations explain
    low: float  # lower end of the interval; above 0 it cannot be put down to chance
    high: float  # upper end of it
    # probability of workers as different as these if all were the same, by the F test
    p_value: float
    workers: int  # workers that were measured
    rounds: int  # measured operations (or ratios) of each


class Noise(ResultModel):
    """Noise of one operation, for checkpoints of about one size in one place."""

    operation: str
    storage: str  # kind of storage, such as `ext4` or `gs`
    cpu: str  # model of the CPU
    device: str  # kind of device
    # smallest size of the class, bytes, a power of 4; the largest is below 4 times that. 0 for
    # states without bytes.
    size: int
    # robust standard deviation of the log time between operations that follow each other: the
    # median over the series
    sigma: float
    n: int  # operations that were measured
    series: int  # series, each of one point in one run
    repeat_s: float  # seconds from the start of one repeat to the start of the next
    points: tuple[str, ...]  # ids of the points, and of the arms of pairs
    # process noise: by how much worker processes differ on the log scale; None if no run had
    # several workers of one kind
    tau: Component | None = None
    # by how much the log ratio of two options differs from worker to worker; None if no pair was
    # run by several workers that had both
    interaction: Component | None = None


class Passport(ResultModel):
    """Noise passport of a place: `passport.json`."""

    schema_version: Literal[1] = PASSPORT_VERSION  # version of this layout
    made_at: datetime.datetime  # when, UTC
    noise: tuple[Noise, ...]  # one entry per operation, size class, storage and machine

    def entry(
        self,
        point: SweepEntry,
        operation: str,
        *,
        storage: str | None = None,
        cpu: str | None = None,
    ) -> Noise | None:
        """Returns the entry that is nearest to a point; None when nothing like it was measured.

        That is the entry of the point itself; or else that of its size class or of the next one, on
        any kind of storage and model of CPU where these are None.
        """
        ids, size = point_ids(point), baseline_point(point).checkpoint.num_bytes

        def distance(entry: Noise) -> tuple[bool, float, int]:
            return ids.isdisjoint(entry.points), _steps(entry.size, size), -entry.n

        like = [
            entry
            for entry in self.noise
            if entry.operation == operation
            and storage in (None, entry.storage)
            and cpu in (None, entry.cpu)
            and (not ids.isdisjoint(entry.points) or _steps(entry.size, size) <= 1)
        ]
        return min(like, key=distance, default=None)


def size_class(num_bytes: int) -> int:
    """Returns the smallest size of the class of a size, bytes."""
    return 0 if num_bytes < 1 else _STEP ** ((num_bytes.bit_length() - 1) // 2)


def _steps(size: int, num_bytes: int | None) -> float:
    """Returns how many classes apart a class and a size are."""
    if num_bytes is None:
        return math.inf
    other = size_class(num_bytes)
    if size == other:
        return 0
    return math.inf if 0 in (size, other) else abs(math.log(size / other, _STEP))


def point_ids(point: SweepEntry) -> set[str]:
    """Returns the id of a point; of a pair also those of its arms."""
    return {point.id, *(side.id for side in sides(point).values())}


def save(passport: Passport, path: str) -> None:
    """Writes a passport.

    Raises:
        UserError: It cannot be written.
    """
    try:
        write_atomically(registry_path(path), passport.model_dump_json(indent=1).encode())
    except OSError as error:
        raise UserError(f"cannot write the passport: {error}") from None


def load(path: str) -> Passport:
    """Reads a passport.

    Raises:
        UserError: There is none, or it is damaged or of another version.
    """
    file = registry_path(path)
    if not file.exists():
        raise UserError(
            f"there is no noise passport at {file}; write one with "
            f"`{command('calibrate', 'DIR', '--save', file)}`"
        )
    return read_model(file, Passport, "noise passport")


def find(path: str | None) -> Passport | None:
    """Returns the passport of that path, or the user's own, or None when there is neither.

    Raises:
        UserError: There is none at the path that was given, or it cannot be read.
    """
    if path is not None:
        return load(path)
    own = default_path()
    return load(str(own)) if own.exists() else None


def default_path() -> Path:
    """Returns where a passport is looked for when none is named, below the user's cache."""
    return user_cache("passport.json")
