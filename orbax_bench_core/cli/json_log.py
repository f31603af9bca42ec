"""Log of a measurement for machines: a JSON object a line."""

from __future__ import annotations

import datetime
import json
from typing import IO, TYPE_CHECKING, Any, Final

from orbax_bench_core import execute

if TYPE_CHECKING:
    from orbax_bench_core.analysis.verdicts import PointVerdict

_OF_OPERATION: Final[dict[str, bool | set[str]]] = {
    "word": True,
    "endpoint": True,
    "low": True,
    "high": True,
    "ratio": True,
    "stalls": {"word", "candidate", "baseline", "operations", "bound", "measured"},
}


class JsonLog(execute.Watcher):
    """Writes progress as JSON lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __call__(self, event: execute.Event) -> None:
        """Writes one thing that happened."""
        if isinstance(event, execute.Progress):
            self._progress(event)
        elif isinstance(event, execute.Retry):
            self.write(
                "repeat_retried",
                point=event.point.name,
                point_id=event.point.id,
                repeat=event.index,
                **_of_pair(event),
                error=event.reason,
                tries_left=event.left,
            )
        else:
            from orbax_bench_core.experiments import (
                PairJudged,  # with what compares, which takes a while
            )

            if isinstance(event, PairJudged):
                self._judged(event.verdict)

    def _progress(self, progress: execute.Progress) -> None:
        what = {"point": progress.point.name, "point_id": progress.point.id}
        if progress.repeat is None:
            kind = "warmup_started" if progress.index is None else "repeat_started"
            self.write(kind, **what, repeat=progress.index, **_of_pair(progress))
            return
        error = progress.repeat.error
        self.write(
            "repeat_ended",
            **what,
            repeat=progress.index,
            **_of_pair(progress),
            status=progress.repeat.status,
            first_attempt=progress.repeat.first_attempt,
            reused=progress.reused,
            error=None if error is None else error.said,
            seconds=progress.repeat.labelled_seconds(),
        )

    def _judged(self, verdict: PointVerdict) -> None:
        self.write(
            "judged",
            point=verdict.point,
            point_id=verdict.point_id,
            verdict=verdict.word,
            endpoint=verdict.endpoint,
            reason=[reason.model_dump() for reason in verdict.reason],
            blocks=verdict.blocks,
            attempts={
                arm: {"count": found.count, "failed": found.failed}
                for arm, found in verdict.attempts.items()
            },
            failures=None
            if verdict.failures is None
            else verdict.failures.model_dump(include={"word", "bound"}),
            next_look=verdict.next_look,
            operations={
                operation.operation: operation.verdict.model_dump(include=_OF_OPERATION)
                for operation in verdict.operations
                if operation.primary
            },
        )

    def write(self, event: str, **fields: Any) -> None:
        """Writes one event with the time, UTC."""
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"time": time, "event": event, **fields}), file=self._stream, flush=True)


def _of_pair(progress: execute.Progress | execute.Retry) -> dict[str, Any]:
    if progress.arm is None:
        return {}
    return {"arm": progress.arm, "block": progress.block, "life": progress.life}
