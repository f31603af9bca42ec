"""Record: the JSON that one repeat leaves per host."""

import hashlib
import json
import math
from typing import Annotated, Any, Literal, Self

import pydantic

from orbax_bench_core.config import BLOCK_SIZE, MAX_PROCESSES, Arm
from orbax_bench_core.errors import redacted, redacted_deeply, shortened
from orbax_bench_core.files import ResultModel
from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.provenance import Source, recorded_code
from orbax_bench_core.records.errors import UNRECORDABLE, ErrorInfo
from orbax_bench_core.records.store_troubles import StoreTrouble
from orbax_bench_core.records.values import MOST_SECONDS, MOST_VALUE, Bytes, Index, Moment, Seconds
from orbax_bench_core.records.verified import Verified
from orbax_bench_core.records.versions import Versioned, parse
from orbax_bench_core.sweep import SweepEntry, SweepPoint, side

Status = Literal["passed", "failed", "skipped"]


class Attempt(ResultModel):
    """An earlier try of the same repeat, which failed on this host or on another one.

    Attributes:
        error: Why it failed.
        samples: What it had measured until then; never aggregated.
        started_at: When it began, UTC.
        duration_s: Seconds that it took.
        worker: Id of the process that made it, as in the record; empty if none did.
    """

    error: ErrorInfo
    samples: tuple[Sample, ...] = ()
    started_at: Moment
    duration_s: Seconds
    worker: str = ""


class State(ResultModel):
    """Size and digest of the tree that was saved and loaded.

    Attributes:
        num_bytes: Logical size of all arrays, in bytes.
        digest: Content digest per leaf, independent of the layout.
        verified: What restored values were compared with, and found equal to.
    """

    num_bytes: Bytes
    digest: dict[str, str]
    verified: Verified = "none"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the digests of all leaves, in hex; `none` when there is nothing."""
        if not self.digest:
            return "none"
        text = json.dumps(self.digest, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


Effect = Literal["in effect", "not in effect", "not proved"]


class OptionEffect(ResultModel):
    """Effect of one option: proven, disproven, or neither.

    Attributes:
        option: Name of the option.
        asked: Its value in the sweep point.
        state: What is proven; `not proved` where files, samples, events and logs tell neither.
        proof: What tells it, or why nothing does.
    """

    option: str
    asked: Any
    state: Effect
    proof: Annotated[str, pydantic.AfterValidator(redacted)]


def _check_bounds(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    for sample in samples:
        if MOST_VALUE < abs(sample.value) < math.inf:
            raise ValueError(f"{sample.key} is {sample.value}, beyond what can be added up")
    return samples


def _check_mappings(provenance: dict[str, Any]) -> dict[str, Any]:
    for name in ("git", "versions"):  # mappings in every record that has them
        if not isinstance(provenance.get(name, {}), dict):
            raise ValueError(f"`{name}` is no mapping")
    return provenance


class Record(Versioned):
    """One repeat of one sweep point on one host.

    Attributes:
        run_id: The run it belongs to.
        suite: Name of the suite.
        point_id: Id of the sweep point.
        point_name: Name of the sweep point, for people.
        point: The sweep point in full, or the pair of which one arm was measured.
        repeat: Which repeat; warm-ups count on their own.
        warmup: Whether it is a discarded repeat.
        traced: Whether its operations were traced, which makes them slower; only a warm-up is.
        arm: Which side of the point was measured; None outside a paired comparison.
        block: Which block of a paired comparison it belongs to; None outside one.
        life: Which slot of its block, 0 to 3, had a worker of its own for it; None if there are
            no lives, and for a warm-up.
        host: Index of the host process.
        num_hosts: How many host processes took part.
        status: `passed`, `failed` or `skipped`.
        started_at: When the repeat began, UTC.
        duration_s: Seconds from start to end, outside the operations included.
        samples: All that was measured, also before a failure.
        notes: What collectors had to say beside numbers, by operation, such as the sites that
            allocated most.
        error: Why it failed or was skipped.
        state: What was saved and loaded; None when the repeat never got that far.
        inventory: What the repeat left on storage.
        provenance: What ran, and on what.
        worker: Id of the process that measured: `<host>:<pid>:<start>`; empty if none came so
            far.
        attempts: Earlier failed tries, oldest first.
        effects: Whether the options did what they say, as the first host found out.
        store_troubles: Operations that an object store throttled or failed; none elsewhere.
    """

    run_id: str
    suite: str
    point_id: str
    point_name: str
    point: SweepEntry
    repeat: Index
    warmup: bool
    traced: bool = False
    arm: Arm | None = None
    block: Index | None = None
    life: Annotated[int, pydantic.Field(ge=0, lt=BLOCK_SIZE)] | None = None
    host: Annotated[int, pydantic.Field(ge=0, lt=MAX_PROCESSES)] = 0
    num_hosts: Annotated[int, pydantic.Field(ge=1, le=MAX_PROCESSES)] = 1
    status: Status
    started_at: Moment
    duration_s: Seconds
    samples: Annotated[tuple[Sample, ...], pydantic.AfterValidator(_check_bounds)] = ()
    notes: Annotated[dict[str, list[str]], pydantic.AfterValidator(redacted_deeply)] = {}
    error: ErrorInfo | None = None
    state: State | None = None
    inventory: Inventory | None = None
    provenance: Annotated[
        dict[str, Any],
        pydantic.AfterValidator(_check_mappings),
        pydantic.AfterValidator(redacted_deeply),
    ] = {}
    worker: str = ""
    attempts: tuple[Attempt, ...] = ()
    effects: tuple[OptionEffect, ...] = ()
    store_troubles: tuple[StoreTrouble, ...] = ()

    @property
    def measured(self) -> SweepPoint:
        """The point that was measured: one side of a pair, or the record's point itself."""
        return side(self.point, self.arm)

    @property
    def code(self) -> Source:
        """The code under test, which captures are filed by."""
        return recorded_code(self.provenance, self.measured.benchmark)

    @property
    def finished(self) -> bool:
        """Whether running the suite again leaves this repeat as it is."""
        return self.status != "failed"

    def without_content(self, why: str) -> Self:
        """Returns a failed record that says why no file takes what was found."""
        attempts = tuple(
            Attempt(
                error=ErrorInfo(type=each.error.type, message=shortened(each.error.message)),
                started_at=each.started_at,
                duration_s=each.duration_s,
                worker=each.worker,
            )
            for each in self.attempts
        )
        said = "" if self.error is None else f"; it failed by {self.error.said}"
        error = ErrorInfo(
            type=UNRECORDABLE,
            message=f"{len(self.samples):,} samples and {len(self.notes):,} notes are not kept: "
            f"{why}; measure fewer blocks in a repeat, and name them by text{said}",
        )
        left = {"samples": (), "notes": {}, "effects": (), "store_troubles": (), "error": error}
        return self.model_copy(update={**left, "status": "failed", "attempts": attempts})

    def as_attempt(self, error: ErrorInfo | None = None) -> tuple[Attempt, ...]:
        """Returns this record, and those before it, as attempts of a new try.

        Args:
            error: Why a record that passed is measured again: another host has failed. None if it
                is not.
        """
        error = self.error or error
        if error is None:
            return self.attempts
        this = Attempt(
            error=error,
            samples=self.samples,
            started_at=self.started_at,
            duration_s=self.duration_s,
            worker=self.worker,
        )
        return (*self.attempts, this)


def parse_record(data: bytes) -> Record | None:
    """Returns a record; None of a torn one.

    A record of an operation that took less than no time, or endlessly long, is torn too.

    Raises:
        OtherVersion: It is of a schema version that is not read.
    """
    try:
        record = parse(Record, data)
    except pydantic.ValidationError:
        return None
    times = (sample.value for sample in record.samples if sample.metric == TIME)
    return record if all(0 <= seconds <= MOST_SECONDS for seconds in times) else None
