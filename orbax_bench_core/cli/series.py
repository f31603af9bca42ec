"""Comparisons one after the other: the search for a release, and runs of a suite against itself."""

import math
import time
from collections.abc import Sequence
from typing import Any, Final

import yaml

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.releases import (
    OperationRatio,
    ReleaseSearch,
    ReleaseWord,
    SearchStep,
)
from orbax_bench_core.analysis.verdicts import OperationVerdict, VerdictReport, headline, why
from orbax_bench_core.answers import BISECT
from orbax_bench_core.cli.arm_flags import with_equal_arms
from orbax_bench_core.cli.measurement import STOPS, Measurement, Measuring, stopped
from orbax_bench_core.config import PER_ARM, LoadedSuite, parse_suite
from orbax_bench_core.execute import Session
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.experiments import Comparison
from orbax_bench_core.experiments.releases import (
    Found,
    Release,
    comparing_releases,
    expected_comparisons,
    search_releases,
)
from orbax_bench_core.files import AnyPath
from orbax_bench_core.pages import count, wait
from orbax_bench_core.publishing import publish_verdicts, write_answer
from orbax_bench_core.reasons import NO_REASON, Reasons, of_operation
from orbax_bench_core.records import RunDirectory, RunInfo


class BisectRun:
    """A search that is about to be made; `again` makes it, but for its directory."""

    def __init__(
        self,
        loaded: LoadedSuite,
        output_directory: str,
        package: str,
        releases: Sequence[Release],
        *,
        again: Sequence[str],
        passport: passports.Passport | None,
        how: Measuring,
    ) -> None:
        self._loaded = loaded
        self._root = RunDirectory(output_directory).root
        self._package = package
        self._releases = {release.version: release for release in releases}
        self._bad = releases[-1].version
        self._again = (*again, "-o", str(self._root))
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
        page = write_answer(self._root, BISECT, search)
        self._progress("")
        self._say(BISECT.parts.document(search, str(self._root)))
        self._say(f"Report: {page}")
        return exit_code(search.outcome)

    def _outcome(self, version: str, against: str) -> ReleaseWord:
        again = any((step.release, step.against) == (version, against) for step in self._shown)
        folder = f"{against}_and_{version}{'_again' if again else ''}"
        older, newer = self._releases[against], self._releases[version]
        suite = comparing_releases(
            self._loaded,
            older.environment,
            newer.environment,
            gate=self._rules(version, against, confirming=again),
        )
        suite = RunInfo.made_by(self._again, suite)
        measurement = Measurement(Comparison(), suite, str(self._root / folder), self._how)
        if not self._shown:
            self._say_length(measurement.session)
        self._progress(f"\n{self._package} {version} against {against}")
        began = time.monotonic()
        verdicts, page = _compared(measurement)
        self._minutes.append((time.monotonic() - began) / 60)
        for note in verdicts.notes:
            self._progress(f"  {why((note,))}")
        self._progress(f"  report: {page}")
        outcome, reason = _read(verdicts)
        if version == self._bad and outcome == "REGRESSION":
            # What the bad release does worse is what the search is for.
            regressed = (operation.operation for operation in _regressed(verdicts))
            self._primary = self._primary or tuple(dict.fromkeys(regressed))
            # A good release has none of the regression: half of it, on a log scale, is ruled out
            # with far fewer operations than the smallest that matters.
            low = max((each.verdict.low or 1.0 for each in _regressed(verdicts)), default=1.0)
            self._margins[against] = max(verdicts.gate.margin, math.sqrt(low) - 1)
        said = why(reason) if outcome == "FAILED" else headline(verdicts).text
        self._progress(f"  {outcome}: {said}")
        step = SearchStep(
            release=version,
            against=against,
            purpose="search",  # the search says at its end what each was for
            outcome=outcome,
            reason=reason,
            ratios=_ratios(verdicts),
            folder=folder,
        )
        self._shown.append(step)
        if len(self._shown) == 1 and outcome == "REGRESSION":
            usual, _ = expected_comparisons(len(self._releases))
            if usual > 1:
                rest = wait((usual - 1) * self._minutes[0])
                more = count(usual - 1, "comparison")
                self._progress(f"About {more} more; as long as the first: {rest}")
        return outcome

    def _rules(self, version: str, against: str, *, confirming: bool) -> dict[str, Any]:
        # A release in between has the whole regression or none of it; ends, and what is to be
        # confirmed, are judged by the rules of the suite.
        if not self._primary:
            return {}
        rules: dict[str, Any] = {"primary": list(self._primary)}
        if against in self._margins and version != self._bad and not confirming:
            rules |= {"margin": self._margins[against], "metrics": {}}
        return rules

    def _say_length(self, session: Session) -> None:
        usual, most = expected_comparisons(len(self._releases))
        info, minutes = session.info, None
        if self._passport is not None:
            minutes = passports.expected_minutes(
                session.pairs, info.gate, self._passport, str(session.directory.root)
            )
        lives = passports.usual_minutes(session.pairs, info.gate, info.designs)
        unknown = "; the first of them will show how long each takes"
        if lives is not None:
            unknown = f", of about {lives[0]:.0f} to {lives[1]:.0f} minutes each{unknown}"
        took = (
            unknown
            if minutes is None
            else f", probably {wait(usual * minutes)} by the noise passport, without the "
            "time to install releases"
        )
        said = f"{count(usual, 'comparison')} if one release is behind it, {most} at most{took}"
        self._progress(said)

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


def _read(verdicts: VerdictReport) -> tuple[ReleaseWord, Reasons]:
    """Returns the word of a comparison, and the reasons of the first point that has it."""
    failed = [point.reason for point in verdicts.points if point.failed]
    if verdicts.word != "REGRESSION" and failed:
        return "FAILED", failed[0]
    reasons = NO_REASON
    for point in [point for point in verdicts.points if point.word == verdicts.word][:1]:
        reasons += point.reason
        for each in point.operations:
            reasons += of_operation(each.operation, each.verdict.reason) if each.primary else ()
    return verdicts.word, reasons


def _ratios(verdicts: VerdictReport) -> tuple[OperationRatio, ...]:
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


def _regressed(verdicts: VerdictReport) -> list[OperationVerdict]:
    return [
        operation
        for point in verdicts.points
        for operation in point.operations
        if operation.primary and operation.verdict.word == "REGRESSION"
    ]


_BLOCKS: Final = 4
"""Blocks of one run: short runs, so that the time is kept, and each is an A/A test."""

_OPERATIONS: Final = 10
"""Operations per arm of a run in one worker."""


def make_runs(
    suite: LoadedSuite, directory: str, minutes: float, how: Measuring, again: Sequence[str]
) -> int:
    """Makes runs of a suite against itself, and of its own arms, while there is time.

    `again` is the command that goes on with them, but for its directory.
    """
    # In the first every slot of a block is a worker of its own, which shows by how much workers
    # differ. The others are made where both arms share one worker: a few runs of the same pair,
    # each in a new worker, show by how much the ratio of two options differs from worker to worker.
    # Both are made in turns until the next would take too long; the first of each kind always is.
    # It returns the exit code, which is 0 unless it was stopped.
    tell, root, suites = how.reporter.tell, RunDirectory(directory).root, _suites(suite)
    began, took, number = time.monotonic(), dict.fromkeys(suites, 0.0), 0
    while True:
        for kind, one in suites.items():
            spent = (time.monotonic() - began) / 60
            if number and spent + took[kind] > minutes:
                tell(f"{number} run(s) of each kind in {spent:.1f} minutes")
                return 0
            tell(f"\n{kind} {number}, after {spent:.1f} of {minutes:g} minutes")
            try:
                folder = str(root / f"{kind}_{number:03}")
                made = RunInfo.made_by((*again, "-o", str(root)), one)
                _compared(Measurement(Comparison(), made, folder, how))
            except STOPS as stop:
                why, code = stopped(stop)
                how.reporter.say(f"{why}; what is done is kept.")
                return code
            took[kind] = (time.monotonic() - began) / 60 - spent
        number += 1


def _compared(run: Measurement) -> tuple[VerdictReport, AnyPath]:
    """Makes one comparison; returns its verdicts, and the page that has them."""
    run.measure()
    verdicts = run.experiment.verdicts
    assert verdicts is not None
    return verdicts, publish_verdicts(run.session.directory, verdicts)


def _suites(loaded: LoadedSuite) -> dict[str, LoadedSuite]:
    operations = _BLOCKS * PER_ARM * loaded.suite.gate.operations_per_life
    rules: dict[str, Any] = {"tolerance": 0.0, "looks": [operations]}
    found = {"aa": with_equal_arms(loaded, {**rules, "lives": "always"})}
    if _shares_one_worker(loaded):
        data = dict(loaded.source.data)
        data["gate"] = {**data.get("gate", {}), "looks": [_OPERATIONS]}
        text = yaml.safe_dump(data, sort_keys=False)
        found["options"] = parse_suite(text, loaded.source.file)
    return found


def _shares_one_worker(loaded: LoadedSuite) -> bool:
    """Returns whether a suite has arms, and they differ in nothing that needs another worker."""
    arms = loaded.suite.arms
    if arms is None:
        return False
    sides = (arms.baseline, arms.candidate)
    needs = [(arm.environment, arm.processes, arm.mesh_config) for arm in sides]
    return needs[0] == needs[1]
