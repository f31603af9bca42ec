"""Models of `limits.json` and `limits_of_hosts.json`: measured speeds of machine and storage."""

import statistics
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config import HostMemory
from orbax_bench_core.files import ResultModel, write_atomically
from orbax_bench_core.gate import spread
from orbax_bench_core.reasons import NO_REASON, Reasons
from orbax_bench_core.records import RunDirectory, RunFile

LIMITS_SCHEMA_VERSION: Final = 2
"""Version 1 had sentences in the place of reasons."""

_REMEDY: Final = "run the suite into this directory again, which measures limits"

ProbeName = Literal[
    "write_fsync",
    "read_cold",
    "read_warm",
    "memory_copy",
    "first_touch",
    "host_to_device",
    "device_to_host",
    "tensorstore_write",
    "tensorstore_read_cold",
    "tensorstore_read_warm",
    "tensorstore_write_uncompressed",
    "tensorstore_read_cold_uncompressed",
    "tensorstore_read_warm_uncompressed",
]

_GIB = 2**30


_Bytes = Annotated[int, pydantic.Field(ge=0, lt=2**63)]
_Seconds = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]


class ProbeResult(ResultModel):
    """Result of one probe: times, or the reason for which there are none."""

    name: ProbeName  # the probe
    num_bytes: _Bytes  # bytes that each repeat moved, before any compression
    seconds: tuple[_Seconds, ...] = ()  # time of each repeat; empty when it was not measured
    reason: Reasons = NO_REASON  # why it was not measured; empty when it was

    @pydantic.model_validator(mode="after")
    def _times_or_a_reason(self) -> Self:
        if bool(self.seconds) == bool(self.reason):
            raise ValueError(f"{self.name} needs either seconds or a reason why there are none")
        if self.seconds and not self.num_bytes:
            raise ValueError(f"{self.name} has times of no bytes")
        return self

    @property
    def median_s(self) -> float | None:
        """Median of the repeats, in seconds; None when it was not measured."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median, a ratio; None for fewer than two repeats."""
        return spread(self.seconds)

    @property
    def gib_per_s(self) -> float | None:
        """Bytes over the median time, in GiB/s; None when it was not measured."""
        return None if self.median_s is None else self.num_bytes / _GIB / self.median_s


class Surroundings(ResultModel):
    """The state of the machine as the probes began."""

    host_memory: HostMemory  # what the probes' allocator does with memory that is freed
    # processes that wanted a CPU in the last minute: above 1 says that the machine was busy with
    # something else
    load_average: float
    available_memory_bytes: int  # memory that could be taken without swapping
    free_disk_bytes: int | None  # free space at the path; None for an object store
    page_bytes: int  # size of a page of memory, which is what one page fault brings


class Confirmation(ResultModel):
    """A short check that agreed with limits which an earlier run had measured."""

    at: pydantic.AwareDatetime  # when it was made, UTC
    ratio: float  # how far its times are from those of the check at the measurement, at least 1


class Limits(ResultModel):
    """The limits of one machine with one storage, for one size and parallelism."""

    schema_version: Literal[1, 2] = LIMITS_SCHEMA_VERSION  # version of this layout
    path: str  # the storage: a local directory or a gs:// URI
    requested_bytes: int  # bytes that were asked for
    num_bytes: int  # bytes that each probe moved
    # why these are fewer than were asked for; empty when nothing was in the way
    capped_by: Reasons = NO_REASON
    num_threads: int  # threads, files, shards or chunks that each probe works on at once
    dtype: str  # type of the synthetic data, which decides how well it compresses
    taken_at: pydantic.AwareDatetime  # when the probes began, UTC
    duration_s: float  # seconds that all of them took, without the start of their process
    surroundings: Surroundings  # the state of the machine as they began
    provenance: dict[str, Any] = {}  # what ran, and on what
    probes: tuple[ProbeResult, ...]  # what each probe found, in the order of `PROBES`
    # how limits that were kept from an earlier run were checked; None if they were measured for
    # this one
    confirmed: Confirmation | None = None

    @property
    def age_sentence(self) -> str:
        """Which earlier measurement these are, for people; empty if they were made for a run."""
        if self.confirmed is None:
            return ""
        return (
            f"Limits were measured at {self.taken_at:%Y-%m-%d %H:%M} UTC and kept; a short check "
            f"at {self.confirmed.at:%Y-%m-%d %H:%M} UTC agreed within a factor of "
            f"{self.confirmed.ratio:.2f}."
        )

    def seconds(self, name: ProbeName, num_bytes: float) -> float | None:
        """Returns how long the machine takes at best for some bytes.

        Args:
            name: The probe.
            num_bytes: Bytes that an operation moves; time is taken to grow with them.

        Returns:
            Seconds by the median of the probe; None if it was not measured.
        """
        for probe in self.probes:
            if probe.name == name and probe.median_s is not None:
                return probe.median_s * num_bytes / probe.num_bytes
        return None


class HostLimits(ResultModel):
    """The limits of every host of a run, each measured while the others were idle."""

    schema_version: Literal[1, 2] = LIMITS_SCHEMA_VERSION  # version of this layout
    hosts: dict[int, Limits]  # those of each host, by its index
    missing: dict[int, str] = {}  # why those of a host could not be measured


def read(run: RunDirectory) -> Limits | None:
    """Returns the limits of a run's machine and storage, or None if they were not measured."""
    return run.read_result(RunFile.LIMITS, Limits, remedy=_REMEDY)


def read_hosts(run: RunDirectory) -> HostLimits | None:
    """Returns the limits of each host of a run, or None for a run of one host."""
    return run.read_result(RunFile.HOST_LIMITS, HostLimits, remedy=_REMEDY)


def write(run: RunDirectory, found: Limits | HostLimits) -> None:
    """Keeps what the machine and the storage of a run can do, or each host, in its directory."""
    name = RunFile.LIMITS if isinstance(found, Limits) else RunFile.HOST_LIMITS
    write_atomically(run.root / name, found.model_dump_json(indent=1).encode())
