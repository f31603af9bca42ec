"""Calibration as one step: A/A runs in, reject rate and noise passport out."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence

from rich.console import Console

from orbax_bench_core.compare import passport as passports
from orbax_bench_core.compare.calibration import AaTest, aa_tests
from orbax_bench_core.compare.history.find import find_runs
from orbax_bench_core.report.calibration import print_passport, print_tests

_WIDTH = 160


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
    """What A/A runs say of a place.

    Attributes:
        tests: One verdict per pair whose arms are the same.
        passport: How noisy operations are there.
    """

    tests: tuple[AaTest, ...]
    passport: passports.Passport

    @property
    def rejected(self) -> int:
        """How many of the tests said REGRESSION."""
        return sum(test.word == "REGRESSION" for test in self.tests)

    def text(self) -> str:
        """Returns everything as text, as wide as a log."""
        file = io.StringIO()
        self.show(Console(file=file, width=_WIDTH, soft_wrap=True))
        return file.getvalue()

    def show(self, console: Console) -> None:
        """Prints how often identical arms were told apart, then the noise."""
        print_tests(self.tests, console)
        console.print()
        print_passport(self.passport, console)


def calibration_of(places: Sequence[str]) -> Calibration:
    """Reads A/A runs, and others for their noise.

    Args:
        places: Run directories, directories that hold some, or patterns; local or gs://.

    Raises:
        SuiteError: A place holds no run.
    """
    tests, records = [], []
    for run in find_runs([place for place in places if place]):
        pairs = list(run.read())
        tests += aa_tests(run, pairs)
        records += [record for pair in pairs for record in pair]
    return Calibration(tests=tuple(tests), passport=passports.from_records(records))
