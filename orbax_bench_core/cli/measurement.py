"""A measurement on a terminal: its suite checked, its progress shown, and what stops it said."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from orbax_bench_core.cli.output import Output
from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.cli.results import unwritten
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import (
    CannotRecord,
    CommonFailure,
    HostsMissing,
    RunSettings,
    Session,
    Watcher,
)
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.records import Run


class Interrupted(Exception):
    """A measurement was stopped before its end; all that it has finished is kept.

    Attributes:
        code: Exit code of the command.
    """

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


class Measurement:
    """A suite that is about to be measured, with arms or without.

    Everything that can be wrong with it is found while it is made, before anything is measured.
    """

    def __init__(
        self,
        suite: LoadedSuite,
        output_directory: str,
        *,
        settings: RunSettings,
        output: Output,
        lock: bool,
    ) -> None:
        """Expands the suite, and begins its run directory.

        With `lock` nothing is measured while something else of ours measures on this machine.

        Raises:
            UserError: The suite is invalid, or a path cannot be used.
        """
        self._console = output.console
        self._progress = output.progress
        self._json_log = output.json_log
        self._notifiers = output.notifiers
        session = Session.begin(suite, output_directory, settings=settings, say=output.say)
        self._total = len(session.plain) * session.info.num_repeats
        watch = output.json_log or self._view(session, verbose=output.verbose)
        self._session = dataclasses.replace(session, watch=watch)
        self._lock = lock

    def _view(self, session: Session, *, verbose: bool) -> Watcher:
        console = self._progress
        if session.suite.suite.arms is None:
            names = [point.name for point in session.plain]
            return ProgressReport(console, total=self._total, verbose=verbose, names=names)
        from orbax_bench_core.cli.live_verdicts import LiveVerdicts

        info = session.info
        return LiveVerdicts(console, session.pairs, info.gate, info.designs, verbose=verbose)

    def _say_notes(self) -> None:
        """Shows what a reader of the suite should know; most have nothing of that kind."""
        expansion = self._session.info.expansion
        if not (expansion.notes or expansion.skipped):
            return
        from orbax_bench_core.analysis.summary import notes_document
        from orbax_bench_core.document import print_document

        print_document(notes_document(self._session.info), self._progress)

    def _say_stopped(self, stop: Interrupted) -> None:
        from orbax_bench_core.steps import settle

        # Of a run directory that is gone nothing is left here that the command could go on with.
        there = self._session.directory.exists()
        self._say(f"{stop}; {self._kept()}" if there else str(stop))
        if there:
            with contextlib.suppress(OSError):  # it may be the disk that has ended the run
                settle(Run(self._session.directory))

    def _tell_stopped(self, stop: Interrupted) -> None:
        if stop.code != Exit.INTERRUPTED:  # somebody wanted that
            info = self._session.info
            self._notifiers.failed(info.suite_name, str(self._session.directory.root), str(stop))

    def _kept(self) -> str:
        again = "Run the same command again to"
        if isinstance(self._session.watch, ProgressReport):
            info, kept = self._session.info, self._session.watch.ended
            repeats = [(p.id, i) for p in self._session.plain for i in range(info.num_repeats)]
            with contextlib.suppress(OSError, UserError):  # it may be the disk that has ended it
                kept = self._total - len(self._session.directory.lost(repeats))
            done = f"{kept} of {self._total} repeats are done and kept."
            return f"{done}\n{again} finish the rest."
        return f"what is done is kept. {again} go on."

    def _without(self, nothing: UserError) -> int:
        """Says why there is no conclusion; what was measured is reported."""
        from orbax_bench_core.steps import publish

        with contextlib.suppress(OSError, UserError):
            publish(self._session.directory)
        self._say(str(nothing))
        info, root = self._session.info, str(self._session.directory.root)
        self._notifiers.failed(info.suite_name, root, str(nothing))
        return Exit.FAILED

    def _unwritten(self, failure: OSError, command: str) -> int:
        why, root = str(failure), str(self._session.directory.root)
        self._say(unwritten(failure, command, root))
        self._notifiers.failed(self._session.info.suite_name, root, f"cannot write: {why}")
        return Exit.FAILED

    def _log_end(self, **fields: object) -> None:
        if self._json_log is not None:
            root = str(self._session.directory.root)
            self._json_log.write("run_ended", **fields, run_directory=root)

    def _announce(self, line: str) -> None:
        """Shows what is about to be measured, which is no result."""
        self._progress.print(line, markup=False, highlight=False, soft_wrap=True)

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Turns whatever stops a measurement into `Interrupted`."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted", Exit.INTERRUPTED) from None
    except (CommonFailure, CannotRecord, HostsMissing) as failure:
        raise Interrupted(f"stopped: {failure}", Exit.FAILED) from None
