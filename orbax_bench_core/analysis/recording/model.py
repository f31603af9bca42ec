"""A diagnosis of a recorded job: figures, and what is wrong, the cause that matters most first."""

from __future__ import annotations

from typing import Literal

from orbax_bench_core.analysis.soak import SoakWord
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import ResultModel

Kind = Literal[
    "failed", "cut off", "stalled", "leak", "slow host", "waiting", "slower steps", "too often"
]
"""What can be wrong, in the order in which it is told."""


class Finding(ResultModel):
    """One thing that is wrong."""

    kind: Kind
    text: str  # what it is, where and by how much
    advice: str  # what to do about it


class Times(ResultModel):
    """Seconds of one kind of operation."""

    count: int
    median: float
    most: float  # those of the longest
    total: float


class StepFigures(ResultModel):
    """Steps of training, without the calls to Orbax in them."""

    count: int
    median: float  # seconds
    # how much longer steps are next to a background save, as a ratio with its 95 % interval, and
    # seconds lost by it per save; None if too few steps are known on either side
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    lost_s: float | None = None


class Kept(ResultModel):
    """Memory that a process keeps of each save, by the rule of a soak."""

    level: Literal["host", "device"]
    host: int
    saves: int  # saves of its longest life
    # mebibytes per save, with the 95 % interval; None if there are too few saves
    per_save: float | None = None
    low: float | None = None
    high: float | None = None
    word: SoakWord


class HostFigures(ResultModel):
    """What one host does in a save."""

    host: int
    node: str
    saves: int
    own: float | None  # median seconds that it writes by itself; None if no event says it
    blocked: float | None  # median seconds of the call, without waiting for the save before
    peak: float | None  # most mebibytes that a save adds to its memory


class Phase(ResultModel):
    """A phase of the saves of the first host, as Orbax times it."""

    name: str  # of the metric
    thread: str  # that times it
    median: float  # seconds


class Interval(ResultModel):
    """How often the job saves, and how often it should."""

    now: float  # median seconds from one save to the next
    best: float  # seconds of work between two saves with the most goodput
    goodput_now: float  # useful share of all time
    goodput_best: float
    mtbf: float  # seconds between failures
    mtbf_is_assumed: bool
    recovery: float  # seconds


class SavePoint(ResultModel):
    """One save, for the picture."""

    t: float  # seconds since the recording began
    blocked: float  # seconds of the call without the wait
    waited: float  # seconds of the wait for the save before
    committed: bool


class Diagnosis(ResultModel):
    """What a recording says of a job. Times in seconds."""

    schema_version: Literal[1] = 1
    place: str
    # a recorder's lines, Orbax's lines of a log, or a log of ml-goodput-measurement
    source: Literal["recording", "log", "goodput"] = "recording"
    unsaid: tuple[str, ...] = ()  # what a log does not say
    unread: tuple[str, ...] = ()  # what of it is missing or cannot be read
    hosts: int
    lives: int  # starts of the job
    seconds: float  # that it ran; 0 if a log has no times
    is_going: bool
    findings: tuple[Finding, ...]
    committed: int
    failed: int
    cut_off: int  # saves that never ended
    unknown: int = 0  # saves of which a log does not say whether they ended in a checkpoint
    thread: str = ""  # that saves, if another than the main one; calls block it, and not training
    calls: Times | None  # time that training waited for each save
    waits: Times | None  # of that for the save before, where it waited at all
    background: Times | None
    explicit_s: float  # training waited for saves by calls of its own, in all
    loads: Times | None
    failed_loads: int = 0  # whose calls raised
    save_bytes: int | None  # of one save, on all hosts
    steps: StepFigures | None
    kept: tuple[Kept, ...]
    per_host: tuple[HostFigures, ...]
    phases: tuple[Phase, ...]
    interval: Interval | None = None
    points: tuple[SavePoint, ...]
    checkpoint: str = ""  # the last one that was committed
    suite: str = ""  # file that was written to reproduce it
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of."""
        return Outcome(incomplete=bool(self.findings))

    @property
    def blocked_s(self) -> float:
        """Seconds that training waited for saves, in all."""
        return (0.0 if self.calls is None else self.calls.total) + self.explicit_s
