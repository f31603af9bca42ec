"""Record: the JSON that one repeat leaves per host."""

import datetime
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config import BLOCK_SIZE, MAX_PROCESSES, Arm
from orbax_bench_core.errors import one_line, printable, redacted, redacted_deeply, shortened
from orbax_bench_core.files import ResultModel
from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.provenance import Source, recorded_code
from orbax_bench_core.records.versions import Versioned, parsed
from orbax_bench_core.sweep import SweepEntry, SweepPoint, side

PEER_FAILED = "PeerFailed"
"""Error type of a host that was ended because another one had failed."""

UNMET_NEED: Final = "UnmetNeed"
"""Error type of a repeat that needs what is not here."""
NO_ENVIRONMENT: Final = "EnvironmentFailed"
"""Error type of a repeat whose environment could not be made."""
WITHOUT_EFFECT: Final = "OptionWithoutEffect"
"""Error type of a repeat whose numbers would stand under a false name."""

UNRECORDABLE: Final = "Unrecordable"
"""Error type of a repeat of which more is to be said than a record holds, or what is no text."""

_NO_FAILURES: Final = (UNMET_NEED, NO_ENVIRONMENT, WITHOUT_EFFECT)
_CERTAIN: Final = frozenset(
    {UNMET_NEED, NO_ENVIRONMENT, "NothingMeasured"}
    | {"ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError"}
)
"""Error types of what is missing or wrong in the code, which no further attempt changes."""
_CERTAIN_IN_OWN_CODE: Final = frozenset({"AttributeError", "TypeError"})
"""Those that a library also raises for what it was given, which may differ the next time."""

Status = Literal["passed", "failed", "skipped"]

Verified = Literal["saved", "reference", "itself", "none"]
"""Object of comparison of restored values: what was saved, a reference that another run recorded,
only another load of the same bytes, or nothing."""


MOST_INDEX: Final = 10_000_000
"""Largest index of a repeat, block or operation: none has been seen beyond 100,000."""
MOST_BYTES: Final = 2**63 - 1
MOST_SECONDS: Final = 1e9
"""Longest that anything takes: 30 years."""
MOST_VALUE: Final = 1e100
"""Largest value of any metric, of those that have an end: sums and squares of it have one too."""

Index = Annotated[int, pydantic.Field(ge=0, le=MOST_INDEX)]
Seconds = Annotated[float, pydantic.Field(ge=0, le=MOST_SECONDS)]
Bytes = Annotated[int, pydantic.Field(ge=0, le=MOST_BYTES)]


def _of_our_time(moment: datetime.datetime) -> datetime.datetime:
    if not 2000 <= moment.year < 3000:
        raise ValueError("a date that computations with it would leave the calendar from")
    return moment


Moment = Annotated[datetime.datetime, pydantic.AfterValidator(_of_our_time)]

_MOST_CHARACTERS: Final = MappingProxyType({"type": 200, "message": 10_000, "traceback": 200_000})
"""Characters of a text of an error; of a longer one the beginning and the end are kept."""


def _kept(text: object, info: pydantic.ValidationInfo) -> object:
    """Returns as much of a text as a file holds: not halves of characters, nor 50 MB."""
    if not isinstance(text, str):
        return text
    assert info.field_name is not None
    most = _MOST_CHARACTERS[info.field_name]
    if len(text) > most:
        text = f"{text[: most // 2]}... ({len(text):,} characters) ...{text[-most // 4 :]}"
    return text.encode(errors="backslashreplace").decode()


_ErrorText = Annotated[str, pydantic.BeforeValidator(_kept)]


class ErrorInfo(ResultModel):
    """Reason for which a repeat failed, or was skipped.

    Attributes:
        type: Name of the exception, or `WorkerDied`, `HostLost`, `Frozen`, `Stalled`, `Timeout`,
            `PeerFailed`, `MeshDoesNotFit`, `NotOnPathways`.
        message: One line for people.
        traceback: The full traceback, or the last lines that a dead worker wrote.
    """

    type: _ErrorText
    message: _ErrorText
    traceback: _ErrorText = ""

    @pydantic.field_validator("message", "traceback")
    @classmethod
    def _without_credentials(cls, text: str) -> str:
        return redacted(text)  # a store says the address that failed, with its signature

    @property
    def counts(self) -> bool:
        """Whether it is a failure of what was to be measured, which says something of that.

        A need, an environment or an effect that is missing says that it cannot be measured.
        """
        return self.type not in _NO_FAILURES

    @property
    def certain(self) -> bool:
        """Whether another attempt would fail in the same way.

        So does a bug of the benchmark class, and the lack of a library, an environment or a device.
        """
        own = self.type in _CERTAIN_IN_OWN_CODE and raised_by_author(self.traceback)
        return own or self.type in _CERTAIN

    @property
    def place(self) -> str:
        """The author's line that failed, such as `my_bench.py:17`; empty if none is known."""
        return author_place(self.traceback)

    @property
    def said(self) -> str:
        """The error on one line: `ValueError: kaboom (my_bench.py:17)`."""
        text = f"{self.type}: {self.message}" + (f" ({self.place})" if self.place else "")
        return one_line(text)

    @property
    def shown(self) -> str:
        """The traceback for people: without the frames of the harness."""
        return printable(without_harness(self.traceback))


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


Trouble = Literal["throttled", "storage errors", "retries"]
"""Trouble with an object store: answers of 429 or 408, of 500 or more, and requests made again."""


class StoreTrouble(ResultModel):
    """Trouble with an object store during one operation.

    Attributes:
        operation: Name of the measured block.
        occurrence: Which block of that name in the repeat, from 0.
        kind: `throttled` (answers of 429 or 408), `storage errors` (of 500 or more) or `retries`.
        count: How many TensorStore counted; what others ask of the store is not in it.
    """

    operation: str
    occurrence: Index
    kind: Trouble
    count: Bytes


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


def _bounded(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    for sample in samples:
        if MOST_VALUE < abs(sample.value) < math.inf:
            raise ValueError(f"{sample.key} is {sample.value}, beyond what can be added up")
    return samples


_MAPPINGS: Final = ("git", "versions")
"""Parts of the provenance that are mappings in every record that has them."""


def _with_mappings(provenance: dict[str, Any]) -> dict[str, Any]:
    for name in _MAPPINGS:
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
    samples: Annotated[tuple[Sample, ...], pydantic.AfterValidator(_bounded)] = ()
    notes: Annotated[dict[str, list[str]], pydantic.AfterValidator(redacted_deeply)] = {}
    error: ErrorInfo | None = None
    state: State | None = None
    inventory: Inventory | None = None
    provenance: Annotated[
        dict[str, Any],
        pydantic.AfterValidator(_with_mappings),
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
        """Returns this record, and those before it, as attempts of a new try."""
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


def parsed_record(data: bytes) -> Record | None:
    """Returns a record; None of a torn one.

    A record of an operation that took less than no time, or endlessly long, is torn too.

    Raises:
        OtherVersion: It is of a schema version that is not read.
    """
    try:
        record = parsed(Record, data)
    except pydantic.ValidationError:
        return None
    times = (sample.value for sample in record.samples if sample.metric == TIME)
    return record if all(0 <= seconds <= MOST_SECONDS for seconds in times) else None


_STRONGEST_FIRST: Final[tuple[Verified, ...]] = ("saved", "reference", "itself", "none")

VERIFIED_WORDS: Final[Mapping[Verified, str]] = MappingProxyType(
    {
        "saved": "verified against what was saved",
        "reference": "verified against a reference",
        "itself": (
            "not verified: compared only with another load of the same bytes, as no reference is "
            "known"
        ),
        "none": "not verified: nothing was compared",
    }
)
"""Words on each object of comparison, for people."""


def weakest(found: Iterable[Verified]) -> Verified:
    """Combines the words of several comparisons; of none of them, `none`."""
    return max(found, key=_STRONGEST_FIRST.index, default="none")


_BEGINS: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'^[ |+]*File "(?P<file>[^"]+)", line (?P<line>\d+), in ')
# What a benchmark is run by. The built-in benchmarks are someone's code like any other's.
_HARNESS: Final = re.compile(
    r"orbax_bench_core/(?:authoring|config|execute|files|interface|inventory|leases|measure|provenance|records|state|sweep"
    r"|testing|worker)(?:/[\w/]+)?\.py$|^<frozen |/contextlib\.py$"
)


def author_place(traceback: str) -> str:
    """Returns the author's line that failed, as `my_bench.py:17`; empty if none is known.

    The first frame outside the harness is the author's; the line is the deepest one in a file of
    the same folder, since what a library was doing when it failed is not where the author looks.
    """
    found = _frames(traceback)
    own = [frame for frame in found if not _HARNESS.search(frame["file"])]
    if not own:
        return ""
    frame = [frame for frame in own if _folder(frame) == _folder(own[0])][-1]
    return f"{PurePath(frame['file']).name}:{frame['line']}"


def raised_by_author(traceback: str) -> bool:
    """Says whether the author's own line or the harness raised an exception, and no library."""
    found = _frames(traceback)
    own = [frame for frame in found if not _HARNESS.search(frame["file"])]
    return bool(found) and (not own or _folder(found[-1]) == _folder(own[0]))


def _frames(traceback: str) -> list[re.Match[str]]:
    """Returns the frames of the last exception of a traceback; none of other text."""
    if not traceback.lstrip(" +|").startswith(("Traceback", "Exception Group Traceback")):
        return []
    last = traceback.rpartition(_BEGINS)[2]
    return [match for line in last.splitlines() if (match := _FRAME.match(line))]


def _folder(frame: re.Match[str]) -> PurePath:
    return PurePath(frame["file"]).parent


def without_harness(traceback: str) -> str:
    """Returns a traceback without the frames of the harness, which tell an author nothing.

    A frame goes with the lines of source below it. Where every frame is the harness's, all stay.
    """
    kept: list[str] = []
    hidden = seen = False
    for line in traceback.splitlines(keepends=True):
        frame = _FRAME.match(line)
        if frame:
            hidden = _HARNESS.search(frame["file"]) is not None
            seen = seen or not hidden
        elif hidden and not line.startswith(("    ", "  |     ")):
            hidden = False
        if not hidden:
            kept.append(line)
    return "".join(kept) if seen else traceback
