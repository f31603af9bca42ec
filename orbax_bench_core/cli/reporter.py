"""Reporter of a command that measures: tables and progress for people, or lines of JSON."""

from __future__ import annotations

import datetime
import json
import sys
from typing import IO, TYPE_CHECKING, Any, Final

from orbax_bench_core.cli.results import show, show_answer
from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Event, Progress, Retry, Session, Watcher, to_stderr

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orbax_bench_core.analysis.verdicts import PointVerdict
    from orbax_bench_core.cli.hosts import MeasureFlags
    from orbax_bench_core.document import Document


class Reporter:
    """Everything that a measurement shows: what begins, its progress, and what it found."""

    def __init__(self, flags: MeasureFlags, *, stderr: bool = False) -> None:
        """Shows what a command line asks for; an answer as JSON is alone on standard output."""
        if flags.verbose and flags.quiet:
            raise UserError("--quiet shows less and --verbose more: give one of them")
        self._flags = flags
        self._json_log = JsonLog(sys.stdout) if flags.log_format == "json" else None
        self._console = new_console(
            soft_wrap=not sys.stdout.isatty(),
            quiet=self._json_log is not None,
            stderr=stderr or flags.as_json,
        )
        self._progress = new_console(quiet=True) if flags.quiet else self._console

    def view(self, session: Session) -> Watcher:
        """Returns what shows the progress of a session."""
        if self._json_log is not None:
            return self._json_log
        if session.suite.suite.arms is None:
            from orbax_bench_core.cli.progress import ProgressReport

            total = len(session.wanted)
            return ProgressReport(self._progress, total=total, verbose=self._flags.verbose)
        from orbax_bench_core.cli.live_verdicts import LiveVerdicts

        info = session.info
        return LiveVerdicts(
            self._progress, session.pairs, info.gate, info.designs, verbose=self._flags.verbose
        )

    def say(self, line: str) -> None:
        """Shows what it waits for, or what else it says while it measures."""
        (to_stderr if self._flags.quiet else self.line)(line)

    def tell(self, what: Document | str) -> None:
        """Shows what is no result, such as what is about to be measured."""
        show(what, self._progress)

    def line(self, what: Document | str) -> None:
        """Shows a part of the result."""
        show(what, self._console)

    def answer(self, found: BaseModel, document: Document, page: str) -> None:
        """Prints an answer on standard output: as JSON and nothing else, or for people."""
        show_answer(found, document, page, as_json=self._flags.as_json)

    def log(self, event: str, **fields: Any) -> None:
        """Writes an event to the log for machines."""
        if self._json_log is not None:
            self._json_log.write(event, **fields)


_OF_OPERATION: Final[dict[str, bool | set[str]]] = {
    "word": True,
    "endpoint": True,
    "low": True,
    "high": True,
    "ratio": True,
    "stalls": {"word", "candidate", "baseline", "operations", "bound", "measured"},
}


class JsonLog(Watcher):
    """Writes progress as JSON lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        """Writes one thing that happened."""
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Retry):
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
            from orbax_bench_core.steps import PairJudged  # with what compares, which takes a while

            if isinstance(event, PairJudged):
                self._judged(event.verdict)

    def _progress(self, progress: Progress) -> None:
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
            reason=verdict.reason,
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


def _of_pair(progress: Progress | Retry) -> dict[str, Any]:
    if progress.arm is None:
        return {}
    return {"arm": progress.arm, "block": progress.block, "life": progress.life}
