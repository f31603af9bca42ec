"""A measurement on a terminal: one suite from its checks to its report and its exit code."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.recovery import PhaseName, recovery_document
from orbax_bench_core.analysis.soak import soak_document
from orbax_bench_core.analysis.summary import notes_document, terminal_document
from orbax_bench_core.analysis.verdicts import VerdictReport, compare_stored, verdicts_document
from orbax_bench_core.baselines import capture_into, load_baseline
from orbax_bench_core.cli.live_verdicts import LiveVerdicts
from orbax_bench_core.cli.output import Output
from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.cli.results import (
    run_exit_code,
    show_answer,
    soak_exit_code,
    unwritten,
)
from orbax_bench_core.config import LoadedSuite, UserError
from orbax_bench_core.document import count, print_document
from orbax_bench_core.execute import (
    AllAlike,
    CannotRecord,
    HostsMissing,
    RunSettings,
    Session,
    Watcher,
)
from orbax_bench_core.exit_codes import Exit, worst
from orbax_bench_core.records import Run
from orbax_bench_core.steps import (
    SoakGoal,
    answer_of,
    check_drilled,
    compare_arms,
    comparison_exit_code,
    limits_of,
    load_writers,
    measure_points,
    publish,
    publish_recovery,
    publish_soak,
    publish_verdicts,
    search_points,
    settle,
    soak_points,
)


class Interrupted(Exception):
    """A measurement was stopped before its end; all that it has finished is kept.

    Attributes:
        code: Exit code of the command.
    """

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """Baseline that a run is compared with, and the folder where it is stored as one.

    Attributes:
        compare: A stored baseline or run directory; None compares with nothing.
        capture: The folder of the new baseline; None stores none.
    """

    compare: str | None = None
    capture: str | None = None

    @classmethod
    def of(
        cls, suite: LoadedSuite, *, compare: str | None = None, capture: str | None = None
    ) -> Baselines:
        """Returns what the command line says or else the suite, and reads the baseline once.

        Args:
            suite: The suite.
            compare: What the command line says; None leaves it to the suite.
            capture: Likewise.

        Raises:
            UserError: There is no such baseline, which is better known before the measurement.
        """
        own = suite.suite
        found = cls(
            compare=compare or own.baseline_path, capture=capture or own.baseline_capture_path
        )
        if found.compare is not None:
            load_baseline(found.compare)
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchFor:
    """Search for the best point instead of a full sweep.

    Attributes:
        goal: What to make small; None takes `save`, or the first measure that there is.
    """

    goal: str | None = None


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
        self._outlets = output.outlets
        session = Session.begin(suite, output_directory, settings=settings, say=output.say)
        self._total = len(session.plain) * session.info.num_repeats
        watch = output.json_log or self._view(session, verbose=output.verbose)
        self._session = dataclasses.replace(session, watch=watch)
        self._lock = lock
        self._introduced = False

    def run(
        self,
        *,
        limits: bool,
        baselines: Baselines,
        search: SearchFor | None = None,
        passport: passports.Passport | None = None,
    ) -> int:
        """Measures every point, shows what was found, and returns the exit code.

        Args:
            limits: Whether to measure what the machine and the storage can do, too.
            baselines: What to compare with, and where to store it.
            search: With a search, points that are clearly behind are dropped after some rounds.
            passport: Noise of this machine, which tells how long it will probably take.
        """
        info = self._session.info
        print_document(notes_document(info), self._progress)
        repeats = count(info.num_repeats, "repeat")
        size = f"{count(len(self._session.plain), 'point')} x {repeats}"
        self._announce(f"{info.suite_name}: {size}{self._expected(passport)}")
        try:
            with _stoppable():
                if search is None:
                    measure_points(
                        self._session, limits=limits, lock=self._lock, meanwhile=load_writers
                    )
                else:
                    self._search(search, limits=limits)
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            code = stop.code
        else:
            code = self._conclude_run(baselines)
        self._log_end(exit_code=code)
        return code

    def _expected(self, passport: passports.Passport | None) -> str:
        """Returns about how long the repeats will take, where the passport knows such points."""
        if passport is None:
            return ""
        info, points = self._session.info, self._session.plain
        root = str(self._session.directory.root)
        minutes = passports.run_minutes(points, info.num_repeats, info.gate, passport, root)
        return "" if minutes is None else f", about {passports.wait(minutes)}"

    def _search(self, search: SearchFor, *, limits: bool) -> None:
        found = search_points(self._session, goal=search.goal, limits=limits, lock=self._lock)
        whole = len(self._session.plain) * self._session.info.num_repeats
        self._say(
            f"search ended after {count(found.rounds, 'round')}: {found.ended}; {found.measured} "
            f"repeats instead of {whole}"
        )

    def soak(self, goal: SoakGoal, *, limit_mib: float, as_json: bool) -> int:
        """Makes saves until the goal is reached, shows the verdict, and returns the exit code.

        Args:
            goal: When the soak ends.
            limit_mib: Growth of memory per save that is allowed, in MiB.
            as_json: Whether standard output gets the verdict as JSON and nothing else.
        """
        print_document(notes_document(self._session.info), self._progress)
        try:
            with _stoppable():
                soak_points(self._session, goal, lock=self._lock)
        except Interrupted as stop:
            self._say_stopped(stop)
            return stop.code
        directory = self._session.directory
        try:
            found = publish_soak(directory, limit_mib)
            summary = publish(directory)
        except OSError as failure:
            return self._unwritten(failure, "soak")
        except UserError as nothing:
            return self._without(nothing)
        show_answer(found, soak_document(found), f"{directory.root}/soak.html", as_json=as_json)
        return worst([soak_exit_code(found), run_exit_code(summary, self._console)])

    def drill(
        self, added: Mapping[PhaseName, float], *, allow_inconclusive: bool, as_json: bool
    ) -> int:
        """Kills every repeat once, shows how it came back, and returns the exit code.

        Args:
            added: Seconds of what this machine cannot show, by phase.
            allow_inconclusive: Whether INCONCLUSIVE is as good as PASS, with arms.
            as_json: Whether standard output gets the drills as JSON and nothing else.
        """
        check_drilled(self._session)
        directory, code = self._session.directory, int(Exit.OK)
        print_document(notes_document(self._session.info), self._progress)
        try:
            with _stoppable():
                if self._session.pairs:
                    verdicts = compare_arms(self._session, lock=self._lock)
                    publish_verdicts(directory, verdicts)
                    code = comparison_exit_code(verdicts, allow_inconclusive=allow_inconclusive)
                else:
                    measure_points(self._session, limits=False, lock=self._lock)
            found = publish_recovery(directory, added)
            summary = publish(directory)
        except Interrupted as stop:
            self._say_stopped(stop)
            return stop.code
        except OSError as failure:
            return self._unwritten(failure, "recovery")
        except UserError as nothing:
            return self._without(nothing)
        page = f"{directory.root}/recovery.html"
        show_answer(found, recovery_document(found), page, as_json=as_json)
        return code if self._session.pairs else run_exit_code(summary, self._console)

    def compare(self, *, passport: passports.Passport | None, allow_inconclusive: bool) -> int:
        """Measures both arms until every pair has its verdict, and returns the exit code.

        Args:
            passport: Noise of this machine, which tells how long it will probably take.
            allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.
        """
        self.introduce(passport)
        try:
            verdicts = self.verdicts()
        except Interrupted as stop:
            self._say_stopped(stop)
            self._tell_stopped(stop)
            self._log_end(exit_code=stop.code, verdict=None)
            return stop.code
        code = self._conclude_comparison(verdicts, allow_inconclusive=allow_inconclusive)
        self._log_end(exit_code=code, verdict=verdicts.word)
        return code

    def introduce(self, passport: passports.Passport | None) -> None:
        """Says once what will be compared, and about how many minutes that takes."""
        if self._introduced:
            return
        self._introduced = True
        info, pairs = self._session.info, self._session.pairs
        print_document(notes_document(info), self._progress)
        most = max(info.design(pair).looks(info.gate)[-1] for pair in pairs) if pairs else 0
        self._announce(
            f"{info.suite_name}: {count(len(pairs), 'point')}, up to {most} operations per arm"
        )
        self._announce(f"  baseline:  {info.baseline}")
        self._announce(f"  candidate: {info.candidate}")
        root = str(self._session.directory.root)
        if passport is not None:
            self._announce(passports.forecast(pairs, info.gate, passport, root))
        elif (usual := self.usual_minutes()) is not None:
            self._announce(
                f"About {usual[0]:.0f} to {usual[1]:.0f} minutes for checkpoints of some MiB; "
                "`orbax-bench calibrate` learns what it takes here"
            )

    def verdicts(self) -> VerdictReport:
        """Measures both arms until every pair has its verdict.

        Raises:
            Interrupted: Somebody stopped it, or a result could not be written.
        """
        with _stoppable():
            return compare_arms(self._session, lock=self._lock)

    def expected_minutes(self, passport: passports.Passport) -> float | None:
        """Returns the minutes until every pair has its verdict; None where nothing is known."""
        info, root = self._session.info, str(self._session.directory.root)
        return passports.expected_minutes(self._session.pairs, info.gate, passport, root)

    def usual_minutes(self) -> tuple[float, float] | None:
        """Returns the fewest and most minutes that arms which need new workers usually take."""
        info = self._session.info
        usual = passports.usual_minutes(self._session.pairs, info.gate, info.designs)
        return None if usual is None else (max(1, usual[0]), max(1, usual[1]))

    def publish_verdicts(self, verdicts: VerdictReport) -> str:
        """Writes the pages of verdicts, and returns where the HTML page is."""
        return str(publish_verdicts(self._session.directory, verdicts))

    def _view(self, session: Session, *, verbose: bool) -> Watcher:
        console = self._progress
        if session.suite.suite.arms is None:
            names = [point.name for point in session.plain]
            return ProgressReport(console, total=self._total, verbose=verbose, names=names)
        info = session.info
        return LiveVerdicts(console, session.pairs, info.gate, info.designs, verbose=verbose)

    def _say_stopped(self, stop: Interrupted) -> None:
        # Of a run directory that is gone nothing is left here that the command could go on with.
        there = self._session.directory.exists()
        self._say(f"{stop}; {self._kept()}" if there else str(stop))
        if there:
            with contextlib.suppress(OSError):  # it may be the disk that has ended the run
                settle(Run(self._session.directory))

    def _tell_stopped(self, stop: Interrupted) -> None:
        if stop.code != Exit.INTERRUPTED:  # somebody wanted that
            info = self._session.info
            self._outlets.failed(info.suite_name, str(self._session.directory.root), str(stop))

    def _kept(self) -> str:
        again = "Run the same command again to"
        if isinstance(self._session.watch, ProgressReport):
            done = f"{self._session.watch.ended} of {self._total} repeats are done and kept."
            return f"{done}\n{again} finish the rest."
        return f"what is done is kept. {again} go on."

    def _conclude_run(self, baselines: Baselines) -> int:
        directory = self._session.directory
        try:
            summary = publish(directory)
            extra = limits_of(directory, self._session.info, summary)
            answer = answer_of(directory)
            document = terminal_document(self._session.info, summary, extra, answer)
            print_document(document, self._console)
            verdicts = None
            if baselines.compare is not None:
                verdicts = compare_stored(baselines.compare, str(directory.root))
                publish_verdicts(directory, verdicts)
                print_document(verdicts_document(verdicts), self._console)
            if baselines.capture is not None:
                self._capture(baselines.capture)
        except OSError as failure:
            return self._unwritten(failure, "report")
        self._say(f"Run directory: {directory.root}")
        self._say(f"Report: {directory.root}/report.html")
        code, suite = run_exit_code(summary, self._console), self._session.info.suite_name
        if verdicts is None:
            self._outlets.run(suite, summary, code, str(directory.root))
        else:
            self._outlets.verdicts(verdicts, code, str(directory.root))
        return code

    def _capture(self, path: str) -> None:
        folder, left_out = capture_into(self._session.directory, path)
        self._say(f"Baseline: {folder}")
        for name, reason in left_out.items():
            self._say(f"not captured: {name}: {reason}")

    def _conclude_comparison(self, verdicts: VerdictReport, *, allow_inconclusive: bool) -> int:
        try:
            publish(self._session.directory)
            page = self.publish_verdicts(verdicts)
        except OSError as failure:
            return self._unwritten(failure, "compare")
        print_document(verdicts_document(verdicts), self._console)
        self._say(f"Report: {page}")
        code = comparison_exit_code(verdicts, allow_inconclusive=allow_inconclusive)
        self._outlets.verdicts(verdicts, code, str(self._session.directory.root))
        return code

    def _without(self, nothing: UserError) -> int:
        """Says why there is no conclusion; what was measured is reported."""
        with contextlib.suppress(OSError, UserError):
            publish(self._session.directory)
        self._say(str(nothing))
        return Exit.FAILED

    def _unwritten(self, failure: OSError, command: str) -> int:
        why, root = str(failure), str(self._session.directory.root)
        self._say(unwritten(failure, command, root))
        self._outlets.failed(self._session.info.suite_name, root, f"cannot write: {why}")
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


def without_arms(suite: LoadedSuite) -> LoadedSuite:
    """Returns a suite that has no arms.

    Raises:
        UserError: It has.
    """
    if suite.suite.arms is not None:
        raise UserError(
            suite.source.problem(
                "a suite with arms is a comparison: `orbax-bench ab` runs it", ("arms",)
            )
        )
    return suite


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Turns whatever stops a measurement into `Interrupted`."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted", Exit.INTERRUPTED) from None
    except (AllAlike, CannotRecord, HostsMissing) as failure:
        raise Interrupted(f"stopped: {failure}", Exit.FAILED) from None
