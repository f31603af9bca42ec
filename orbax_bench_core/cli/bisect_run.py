"""Search for the release that made something slower, with its progress on a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from orbax_bench_core.analysis.verdicts import VerdictReport, headline
from orbax_bench_core.cli.measurement import EXIT_FAILED, Interrupted, Measurement, Output
from orbax_bench_core.config import LoadedSuite, UserError
from orbax_bench_core.execute import RunSettings
from orbax_bench_core.records import RunDirectory, write_atomically
from orbax_bench_core.steps import (
    Found,
    Outcome,
    Release,
    comparing_releases,
    find_releases,
    search_releases,
)

_EXIT_NOTHING: Final = 4


class BisectRun:
    """A search that is about to be made."""

    def __init__(
        self,
        loaded: LoadedSuite,
        output_directory: str,
        *,
        package: str,
        good: str,
        bad: str,
        wheels: str | None,
        also: Sequence[str],
        only_wheels: bool,
        devices: int | None,
        lock: bool,
        console: Console,
    ) -> None:
        """Finds the releases; nothing is measured yet.

        Args:
            loaded: The suite.
            output_directory: Holds a run directory for each release that is compared.
            package: The package whose releases are searched.
            good: A release that is fast.
            bad: A later release that is slow.
            wheels: Folder with more releases; None without one.
            also: What else to install in every environment.
            only_wheels: Whether the folder has all releases.
            devices: Simulated CPU devices; None takes what each mesh needs.
            lock: Whether to wait until nothing else of ours measures on this machine.
            console: Where to show progress and results.

        Raises:
            UserError: A release does not exist, or the suite chooses environments itself.
        """
        if loaded.suite.arms is not None or loaded.suite.environments:
            raise UserError(
                loaded.source.problem(
                    "bisect makes environments and arms itself; remove these blocks",
                    ("arms" if loaded.suite.arms is not None else "environments",),
                )
            )
        self._loaded = loaded
        self._root = RunDirectory(output_directory).root
        folder = None if wheels is None else Path(wheels)
        self._releases = find_releases(
            package, good, bad, wheels=folder, also=also, only_wheels=only_wheels
        )
        self._package = package
        self._devices = devices
        self._lock = lock
        self._console = console
        self._primary: tuple[str, ...] = ()
        self._margin = loaded.suite.gate.margin
        self._said: dict[str, str] = {}

    def run(self) -> int:
        """Searches, shows what was found, and returns the exit code."""
        names = ", ".join(release.version for release in self._releases)
        self._say(f"{self._package}: {len(self._releases)} releases: {names}")
        try:
            found = search_releases([release.version for release in self._releases], self._outcome)
        except Interrupted as stop:
            self._say(f"{stop}; what is done is kept. Run the same command again to go on.")
            return stop.code
        self._write(found)
        self._say("")
        self._say(self._conclusion(found))
        if found.first_bad is not None:
            return 0
        return EXIT_FAILED if "FAILED" in found.outcomes.values() else _EXIT_NOTHING

    def _outcome(self, version: str) -> Outcome:
        by_version = {release.version: release for release in self._releases}
        verdicts = self._compare(self._releases[0], by_version[version])
        if any(point.failed for point in verdicts.points):
            reasons = [point.reason for point in verdicts.points if point.failed]
            self._tell(version, "FAILED", reasons[0])
            return "FAILED"
        if not self._primary:
            # What the bad release does worse is what the search is for.
            self._primary, self._margin = _regressed(verdicts), _margin(verdicts)
        self._tell(version, verdicts.word, headline(verdicts))
        return verdicts.word

    def _compare(self, good: Release, other: Release) -> VerdictReport:
        suite = comparing_releases(
            self._loaded, good.environment, other.environment, gate=self._rules()
        )
        measurement = Measurement(
            suite,
            str(self._root / f"{good.version}_and_{other.version}"),
            settings=RunSettings(remove_repeated_dir=True, devices=self._devices),
            output=Output(console=self._console),
            lock=self._lock,
        )
        self._say(f"\n{self._package} {other.version} against {good.version}")
        verdicts = measurement.verdicts()
        page = measurement.publish_verdicts(verdicts)
        for note in verdicts.notes:
            self._say(f"  {note}")
        self._say(f"  report: {page}")
        return verdicts

    def _rules(self) -> dict[str, Any]:
        if not self._primary:
            return {}
        return {"primary": list(self._primary), "margin": self._margin, "metrics": {}}

    def _tell(self, version: str, outcome: Outcome, why: str) -> None:
        self._said[version] = why
        self._say(f"  {outcome}: {why}")

    def _conclusion(self, found: Found) -> str:
        good, bad = self._releases[0].version, self._releases[-1].version
        if found.first_bad is None:
            return (
                f"{self._package} {bad} shows no regression against {good}, so there is nothing "
                f"to search for. {self._said[bad]}"
            )
        between = f" (no verdict on {', '.join(found.undecided)})" if found.undecided else ""
        operations = ", ".join(self._primary)
        return (
            f"{self._package} {found.first_bad} is the first release in which {operations} "
            f"regressed; {found.last_good} is the last good one{between}."
        )

    def _write(self, found: Found) -> None:
        answer = {
            "package": self._package,
            "last_good": found.last_good,
            "first_bad": found.first_bad,
            "undecided": found.undecided,
            "outcomes": [
                {"version": version, "outcome": outcome, "why": self._said[version]}
                for version, outcome in found.outcomes.items()
            ],
            "operations": self._primary,
        }
        write_atomically(self._root / "bisect.json", json.dumps(answer, indent=1).encode())

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


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
