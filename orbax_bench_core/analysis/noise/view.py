"""The calibration of the gate and the noise passport in the terminal."""

from __future__ import annotations

import collections
import dataclasses
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console

from orbax_bench_core.analysis import noise as passports
from orbax_bench_core.analysis.noise import Noise, Passport
from orbax_bench_core.analysis.noise.calibration import AaTest, aa_tests
from orbax_bench_core.baselines import find_runs
from orbax_bench_core.document import num_bytes, seconds

if TYPE_CHECKING:
    from rich.table import Table


_DETECTABLE_AT: Final = (10, 60)
"""Operations per arm for which the table says what they find."""


def print_tests(tests: Sequence[AaTest], console: Console) -> None:
    """Prints how often identical arms were told apart, and which.

    Args:
        tests: Verdicts on identical arms.
        console: Where to.
    """
    from orbax_bench_core.gate import reject_rate

    by_alpha: dict[float, list[AaTest]] = collections.defaultdict(list)
    for test in tests:
        by_alpha[test.alpha].append(test)
    for alpha, same in sorted(by_alpha.items()):
        rejected = [test for test in same if test.word == "REGRESSION"]
        found = reject_rate(len(same), len(rejected), alpha)
        colour = "red" if found.calibrated is False else "green"
        console.print(f"[{colour}]{found.statement}[/]", highlight=False, soft_wrap=True)
        if found.low is not None and found.high is not None:
            _say(f"  95 % interval of the rate: {found.low:.1%} to {found.high:.1%}", console)
        for test in rejected:
            _say(f"  REGRESSION in run {test.run_id}, {test.point}: {test.place}", console)
    words = collections.Counter(test.word for test in tests)
    if tests:
        said = ", ".join(f"{count} {word}" for word, count in words.most_common())
        most = max(test.operations for test in tests)
        _say(f"  {said}; at most {most} operations per arm", console)
    else:
        _say(
            "no A/A tests: make some with `orbax-bench ab SUITE --output-directory DIR --aa`",
            console,
        )


def print_passport(passport: Passport, console: Console) -> None:
    """Prints how noisy operations are, and what that lets a comparison find.

    Args:
        passport: The passport.
        console: Where to.
    """
    from rich.markup import escape

    from orbax_bench_core.analysis.verdicts import share
    from orbax_bench_core.config import GateRule
    from orbax_bench_core.gate import detectable

    table = _table()
    for noise in passport.noise:
        table.add_row(
            escape(noise.storage),
            escape(place(noise)),
            size(noise),
            escape(noise.operation),
            share(noise.sigma),
            str(noise.n),
            seconds(noise.repeat_s),
            *(share(detectable(noise.sigma, n, GateRule())) for n in _DETECTABLE_AT),
        )
    console.print(table)


def size(noise: Noise) -> str:
    """Returns the sizes of an entry, such as `64 MiB to 256 MiB`."""
    if noise.size == 0:
        return "no bytes"
    return f"{num_bytes(noise.size)} to {num_bytes(4 * noise.size)}"


def place(noise: Noise) -> str:
    """Returns the machine of an entry."""
    return noise.cpu if noise.device in ("cpu", "unknown") else f"{noise.cpu}, {noise.device}"


def _table() -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    found = [f"{operations} per arm find" for operations in _DETECTABLE_AT]
    for heading in ("storage", "machine", "checkpoint", "operation"):
        table.add_column(heading, overflow="fold")
    for heading in ("noise", "n", "a repeat takes", *found):
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _say(console_line: str, console: Console) -> None:
    console.print(console_line, markup=False, highlight=False, soft_wrap=True)


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
        UserError: A place holds no run.
    """
    tests, records = [], []
    for run in find_runs([place for place in places if place]):
        pairs = list(run.read())
        tests += aa_tests(run, pairs)
        records += [record for pair in pairs for record in pair]
    return Calibration(tests=tuple(tests), passport=passports.from_records(records))
