"""Runner of chaos, which goes on where it was stopped: counts of its own, made by `perf.counts`.

`python -m perf.chaos [--kills N] [--seed S] [--only NAME ...] [--most N] [--state DIR] [--list]`
"""

import argparse
import collections
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perf.chaos.disturbances import DISTURBED
from perf.chaos.kills import IN_A_ROW
from perf.chaos.scenarios import SCENARIOS
from perf.counts.__main__ import main as make
from perf.counts.table import Count
from perf.lines import read_lines

KILLS: Final = 1040
_STATE: Final = Path("build/chaos")
_KILLS: Final = "kills"


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the trials that are left, and prints what was done and what is left."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m perf.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="kills over all commands")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    parser.add_argument("--state", type=Path, default=_STATE, help="where trials are kept")
    options, rest = parser.parse_known_args(given)
    counts = chaos_counts(kills=options.kills, seed=options.seed, state=options.state)
    code = make(["--state", str(options.state), *rest], counts)
    for line in _totals(counts, options.state):
        print(line)
    return code


def chaos_counts(*, kills: int = KILLS, seed: int = 0, state: Path = _STATE) -> tuple[Count, ...]:
    """Returns a count per command and disturbance, with so many kills over all commands."""
    whole = sum(scenario.share for scenario in SCENARIOS.values())
    trials = {
        (name, _KILLS): math.ceil(kills * scenario.share / whole / IN_A_ROW)
        for name, scenario in SCENARIOS.items()
    }
    trials |= DISTURBED
    return tuple(
        Count(
            name=f"chaos_{of}_{by}",
            claim=f"`{of}` after {by}: run again it leaves what an undisturbed one does",
            trials=number,
            command=(
                *(sys.executable, "-m", "perf.chaos.trial", "--of", of, "--by", by),
                *("--seed", str(seed), "--number", "{trial}", "--state", str(state)),
            ),
        )
        for (of, by), number in trials.items()
        if number
    )


def _totals(counts: Sequence[Count], state: Path) -> list[str]:
    """Returns how often each command got what, from the last lines of trials that held."""
    lines, whole = [], 0
    for count in counts:
        found: collections.Counter[str] = collections.Counter()
        for trial in read_lines(count.file(state)):
            for word in trial["said"].split() if trial["holds"] else ():
                name, _, number = word.partition("=")
                found[name] += int(number) if number.isdecimal() else 0
        if found:
            of = ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
            lines.append(f"{count.name}: {found.total()}: {of}")
            whole += found.total() if count.name.endswith(_KILLS) else 0
    return [*lines, f"kills in all: {whole}"]


if __name__ == "__main__":
    sys.exit(main())
