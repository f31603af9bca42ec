"""A run while it goes on, as one JSON object a line, for machines that read logs."""

from __future__ import annotations

import datetime
import json
from types import TracebackType
from typing import IO, Any, Self

from orbax_bench_core.analysis.verdicts import PointVerdict
from orbax_bench_core.execute import Progress


class JsonLog:
    """Writes progress as JSON lines; a context manager, to be passed as the watcher of a run."""

    def __init__(self, stream: IO[str]) -> None:
        """Writes to `stream`."""
        self._stream = stream
        self.ended = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.flush()

    def __call__(self, progress: Progress) -> None:
        """Writes one thing that happened."""
        what = {"point": progress.point.name, "point_id": progress.point.id}
        if progress.repeat is None:
            kind = "warmup_started" if progress.index is None else "repeat_started"
            self.write(kind, **what, repeat=progress.index, **_of_pair(progress))
            return
        self.ended += 1
        error = progress.repeat.error
        self.write(
            "repeat_ended",
            **what,
            repeat=progress.index,
            **_of_pair(progress),
            status=progress.repeat.status,
            reused=progress.reused,
            error=None if error is None else f"{error.type}: {error.message}",
            seconds=progress.repeat.labelled_seconds(),
        )

    def judged(self, verdict: PointVerdict) -> None:
        """Writes what a point says after a look."""
        self.write(
            "judged",
            point=verdict.point,
            point_id=verdict.point_id,
            verdict=verdict.word,
            reason=verdict.reason,
            blocks=verdict.blocks,
            operations={
                one.operation: one.verdict.model_dump(include={"word", "ratio", "low", "high"})
                for one in verdict.operations
                if one.primary
            },
        )

    def write(self, event: str, **fields: Any) -> None:
        """Writes one event with the time, UTC."""
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"time": time, "event": event, **fields}), file=self._stream, flush=True)


def _of_pair(progress: Progress) -> dict[str, Any]:
    return {} if progress.arm is None else {"arm": progress.arm, "block": progress.block}
