"""Lines of a recording, as `orbax_bench_core.recorder` writes them (docs/recording.md)."""

from typing import Annotated, Literal

import pydantic

Seconds = Annotated[float, pydantic.Field(ge=0, le=1e9)]
Epoch = Annotated[float, pydantic.Field(ge=0, le=3e10)]
Bytes = Annotated[int, pydantic.Field(ge=0, le=2**63)]
Index = Annotated[int, pydantic.Field(ge=0, lt=100_000)]
EventSums = tuple[int, float, float, str]
"""How often an event came, sum and last of its values, and the thread of the first."""


class Line(pydantic.BaseModel):
    """A line of any kind, which has the keys of its kind; keys of later versions are left out."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)

    line: Literal[
        "life", "begin", "ended", "end", "failed", "surfaced", "steps", "wait", "stall", "alive",
        "trouble", "close",
    ]  # fmt: skip
    t: Epoch
    # Of a process.
    format: int = 0
    host: Index = 0
    hosts: Index = 1
    pid: int = 0
    node: str = ""
    jax: str = ""
    orbax: str = ""
    lacking: list[str] = []
    # Of a save or load.
    id: int | None = None
    what: str = ""
    step: int | None = None
    path: str = ""
    background: bool = False
    overlaps: list[int] = []
    thread: str = ""
    state: Literal["committed", "failed", "cancelled", "open", "unknown"] = "open"
    call_s: Seconds | None = None
    waited_s: Seconds = 0.0
    total_s: Seconds | None = None
    rss: list[Bytes] | Bytes | None = None
    device: list[Bytes] = []
    events: dict[str, EventSums] = {}
    # Of a failure.
    where: str = ""
    error: str = ""
    message: str = ""
    # Of steps, of a wait and of a stall.
    n: int = 0
    s: list[Seconds] = []
    seconds: Seconds = 0.0

    @property
    def end(self) -> float:
        """Seconds since the epoch at which what it tells was over."""
        return self.t + sum(self.s) + self.seconds + (self.total_s or self.call_s or 0.0)
