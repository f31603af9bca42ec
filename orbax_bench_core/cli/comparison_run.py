"""Comparison on a terminal: both arms of every pair until its verdict, and the exit code."""

from __future__ import annotations

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.verdicts import VerdictReport, verdicts_document
from orbax_bench_core.cli.measurement import Interrupted, Measurement, stoppable
from orbax_bench_core.document import count, print_document
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.steps import compare_arms, publish, publish_verdicts


class ComparisonRun(Measurement):
    """A suite whose arms are about to be compared."""

    _introduced = False

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
        self._say_notes()
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
        with stoppable():
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

    def _conclude_comparison(self, verdicts: VerdictReport, *, allow_inconclusive: bool) -> int:
        try:
            publish(self._session.directory)
            page = self.publish_verdicts(verdicts)
        except OSError as failure:
            return self._unwritten(failure, "compare")
        print_document(verdicts_document(verdicts), self._console)
        self._say(f"Report: {page}")
        code = exit_code(verdicts.outcome, allow_inconclusive=allow_inconclusive)
        self._notifiers.verdicts(verdicts, code, str(self._session.directory.root))
        return code
