"""Lines of a recording, as `orbax_bench_core.recorder` writes them, version 1."""

from typing import Annotated, Literal

import pydantic


class _Line(pydantic.BaseModel):
    """A line; keys of later versions are left out."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)


Seconds = Annotated[float, pydantic.Field(ge=0, le=1e9)]
Epoch = Annotated[float, pydantic.Field(ge=0, le=3e10)]  # seconds since the epoch
Bytes = Annotated[int, pydantic.Field(ge=0, le=2**63)]
What = Literal["save", "load", "wait"]
State = Literal["committed", "failed", "cancelled", "open"]
EventSums = tuple[int, float, float, str]
"""How often an event came, sum and last of its values, and the thread of the first."""


class LifeLine(_Line):
    """Begin of a process."""

    line: Literal["life"]
    format: Literal[1]
    t: Epoch
    host: Annotated[int, pydantic.Field(ge=0, lt=100_000)]
    hosts: Annotated[int, pydantic.Field(ge=1, le=100_000)]
    pid: int
    node: str = ""
    python: str = ""
    jax: str = ""
    orbax: str = ""
    devices: int = 0
    device_kind: str = ""
    lacking: list[str] = []


class BeginLine(_Line):
    """Begin of a save or load."""

    line: Literal["begin"]
    id: int
    what: Literal["save", "load"]
    step: int | None = None
    path: str
    t: Epoch
    background: bool = False
    overlaps: list[int] = []


class EndedLine(_Line):
    """End of a save or load, at once; the line `end` with the rest follows."""

    line: Literal["ended"]
    id: int
    t: Epoch
    state: State


class EndLine(_Line):
    """All that is known of a save or load."""

    line: Literal["end"]
    id: int
    what: Literal["save", "load"]
    step: int | None = None
    path: str
    t: Epoch
    state: State
    background: bool = False
    call_s: Seconds | None = None
    waited_s: Seconds = 0.0
    total_s: Seconds | None = None
    rss: list[Bytes] = []
    device: list[Bytes] = []
    store: str = ""
    compression: str = ""
    events: dict[str, EventSums] = {}


class FailedLine(_Line):
    """A failure: of a call, of a background part, or one of those that surfaced later."""

    line: Literal["failed", "surfaced"]
    id: int | None = None
    where: Literal["call", "background"] = "call"
    what: What
    step: int | None = None
    t: Epoch
    error: str
    message: str = ""


class StepsLine(_Line):
    """Steps with consecutive numbers, from number `n`, which began at `t`."""

    line: Literal["steps"]
    n: int
    t: Epoch
    s: list[Seconds]


class WaitLine(_Line):
    """A wait that the job asked for."""

    line: Literal["wait"]
    t: Epoch
    s: Seconds


class StallLine(_Line):
    """A warning that the job printed, or withheld."""

    line: Literal["stall"]
    t: Epoch
    what: str
    step: int | None = None
    s: Seconds
    usual_s: Seconds


class OtherLine(_Line):
    """The process goes on, ends, or the recorder has trouble."""

    line: Literal["alive", "close", "trouble", "event"]
    t: Epoch
    error: str = ""


Line = Annotated[
    LifeLine
    | BeginLine
    | EndedLine
    | EndLine
    | FailedLine
    | StepsLine
    | WaitLine
    | StallLine
    | OtherLine,
    pydantic.Field(discriminator="line"),
]
PARSER: pydantic.TypeAdapter[Line] = pydantic.TypeAdapter(Line)
