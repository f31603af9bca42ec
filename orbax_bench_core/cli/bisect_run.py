"""Search for the release that made something slower, with its progress on a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.releases import (
    OperationRatio,
    ReleaseSearch,
    ReleaseWord,
    SearchStep,
    search_document,
)
from orbax_bench_core.analysis.verdicts import VerdictReport, headline
from orbax_bench_core.cli.measurement import STOPS, Measurement, Measuring, stopped
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.document import wait
from orbax_bench_core.execute import Session
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps import (
    Comparison,
    publish_search,
    publish_verdicts,
    usual_minutes,
)
from orbax_bench_core.steps.releases import (
    Found,
    Release,
    comparing_releases,
    expected_comparisons,
    search_releases,
)


class BisectRun:
    """A search that is about to be made."""

    def __init__(
        self,
        loaded: LoadedSuite,
        output_directory: str,
        package: str,
        releases: Sequence[Release],
        *,
        passport: passports.Passport | None,
        how: Measuring,
    ) -> None:
        """Prepares; nothing is measured yet.

        Args:
            loaded: The suite.
            output_directory: Holds a run directory for each comparison.
            package: The package whose releases are searched.
            releases: They, from one that is fast to one that is slow.
            passport: Noise of this machine, which tells how long the search will probably take.
            how: How to measure.
        """
        self._loaded = loaded
        self._root = RunDirectory(output_directory).root
        self._package = package
        self._releases = {release.version: release for release in releases}
        self._bad = releases[-1].version
        self._passport = passport
        self._how = how
        self._say, self._progress = how.reporter.line, how.reporter.tell
        self._primary: tuple[str, ...] = ()
        self._margins: dict[str, float] = {}
        self._shown: list[SearchStep] = []
        self._minutes: list[float] = []

    def run(self) -> int:
        """Searches, shows what was found, and returns the exit code."""
        names = list(self._releases)
        self._progress(f"{self._package}: {len(names)} releases: {', '.join(names)}")
        try:
            found = search_releases(names, self._outcome)
        except STOPS as stop:
            why, code = stopped(stop)
            self._say(f"{why}; what is done is kept. Run the same command again to go on.")
            return code
        search = self._search(found)
        page = publish_search(self._root, search)
        self._progress("")
        self._say(search_document(search))
        self._say(f"Report: {page}")
        return exit_code(search.outcome)

    def _outcome(self, version: str, against: str) -> ReleaseWord:
        folder = self._folder(version, against)
        measurement = self._measurement(version, against, folder)
        if not self._shown:
            self._say_length(measurement.session)
        self._progress(f"\n{self._package} {version} against {against}")
        began = time.monotonic()
        measurement.measure()
        self._minutes.append((time.monotonic() - began) / 60)
        verdicts = measurement.experiment.verdicts
        assert verdicts is not None
        page = publish_verdicts(measurement.session.directory, verdicts)
        for note in verdicts.notes:
            self._progress(f"  {note}")
        self._progress(f"  report: {page}")
        outcome, why = _read(verdicts)
        if version == self._bad and outcome == "REGRESSION":
            # What the bad release does worse is what the search is for.
            self._primary = self._primary or _regressed(verdicts)
            self._margins[against] = _margin(verdicts)
        self._progress(f"  {outcome}: {why}")
        step = SearchStep(
            release=version,
            against=against,
            purpose="search",  # the search says at its end what each was for
            outcome=outcome,
            why=why,
            ratios=_ratios(verdicts),
            folder=folder,
        )
        self._shown.append(step)
        if len(self._shown) == 1 and outcome == "REGRESSION":
            self._say_rest()
        return outcome

    def _folder(self, version: str, against: str) -> str:
        """Returns the name of a run directory; a pair that is compared again has another one."""
        again = any((step.release, step.against) == (version, against) for step in self._shown)
        return f"{against}_and_{version}{'_again' if again else ''}"

    def _measurement(self, version: str, against: str, folder: str) -> Measurement:
        older, newer = self._releases[against], self._releases[version]
        suite = comparing_releases(
            self._loaded,
            older.environment,
            newer.environment,
            gate=self._rules(version, against, confirming=folder.endswith("_again")),
        )
        return Measurement(Comparison(), suite, str(self._root / folder), self._how)

    def _rules(self, version: str, against: str, *, confirming: bool) -> dict[str, Any]:
        """Returns what a comparison has different from the suite's gate.

        A release in between has the whole regression or none of it; ends, and what is to be
        confirmed, are judged by the rules of the suite.
        """
        if not self._primary:
            return {}
        rules: dict[str, Any] = {"primary": list(self._primary)}
        if against in self._margins and version != self._bad and not confirming:
            rules |= {"margin": self._margins[against], "metrics": {}}
        return rules

    def _say_length(self, session: Session) -> None:
        usual, most = expected_comparisons(len(self._releases))
        minutes = None
        if self._passport is not None:
            minutes = passports.expected_minutes(
                session.pairs, session.info.gate, self._passport, str(session.directory.root)
            )
        lives = usual_minutes(session)
        unknown = "; the first of them will tell how long each takes"
        if lives is not None:
            unknown = f", of about {lives[0]:.0f} to {lives[1]:.0f} minutes each{unknown}"
        took = (
            unknown
            if minutes is None
            else f", probably {wait(usual * minutes)} by the noise passport, without the "
            "time to install releases"
        )
        self._progress(f"{_comparisons(usual)} if one release is behind it, {most} at most{took}")

    def _say_rest(self) -> None:
        usual, _ = expected_comparisons(len(self._releases))
        if usual > 1:
            rest = wait((usual - 1) * self._minutes[0])
            self._progress(f"About {_comparisons(usual - 1)} more; as long as the first: {rest}")

    def _search(self, found: Found) -> ReleaseSearch:
        steps = (
            shown.model_copy(update={"purpose": compared.purpose})
            for shown, compared in zip(self._shown, found.steps, strict=True)
        )
        return ReleaseSearch(
            package=self._package,
            releases=tuple(self._releases),
            conclusion=found.conclusion,
            last_good=found.last_good,
            first_bad=found.first_bad,
            undecided=found.undecided,
            operations=self._primary,
            steps=tuple(steps),
        )


def _comparisons(count: int) -> str:
    return f"{count} comparison{'' if count == 1 else 's'}"


def _read(verdicts: VerdictReport) -> tuple[ReleaseWord, str]:
    """Returns the word of a comparison, and the reason for it in a sentence."""
    reasons = [point.reason for point in verdicts.points if point.failed]
    if verdicts.word != "REGRESSION" and reasons:
        return "FAILED", reasons[0]
    return verdicts.word, headline(verdicts)


def _ratios(verdicts: VerdictReport) -> tuple[OperationRatio, ...]:
    """Returns the ratios of the primary operations, of several points the worst."""
    found: dict[str, OperationRatio] = {}
    for point in verdicts.points:
        for operation in point.operations:
            verdict, name = operation.verdict, operation.operation
            if not operation.primary or verdict.ratio is None:
                continue
            if name not in found or verdict.ratio > found[name].ratio:
                found[name] = OperationRatio(
                    operation=name, ratio=verdict.ratio, low=verdict.low, high=verdict.high
                )
    return tuple(found.values())


def _regressed(verdicts: VerdictReport) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            operation.operation
            for point in verdicts.points
            for operation in point.operations
            if operation.primary and operation.verdict.word == "REGRESSION"
        )
    )


def _margin(verdicts: VerdictReport) -> float:
    """Returns what a good release must rule out: half of the regression, on a log scale.

    A release either has the whole regression or none of it, so that a large one is ruled out with
    far fewer operations than the smallest that matters.
    """
    lows = [
        operation.verdict.low or 1.0
        for point in verdicts.points
        for operation in point.operations
        if operation.primary and operation.verdict.word == "REGRESSION"
    ]
    return max(verdicts.gate.margin, math.sqrt(max(lows, default=1.0)) - 1)
