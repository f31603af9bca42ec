"""Our own speed against the upstream framework's, as paired ratios with their targets.

`python -m perf.harness [--upstream-python PATH] [--rounds N] [--only NAME ...] [--json FILE]`

Without `--upstream-python`, or where the framework cannot be imported there, our own figures are
printed alone. Exit codes: 0 no target was missed, 1 a target was missed, 2 something could not be
measured because it did not work.
"""

import argparse
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from perf import (
    data_generation,
    data_speed,
    measure_cost,
    memory,
    repeats,
    save_cost,
    tour,
    whole_process,
)
from perf.figure import end, paired_table, positive
from perf.pairing import Figure
from perf.probe import Probe, Setting, Upstream, find_upstream, say
from perf.process import ProbeFailed

PROBES: Final[Mapping[str, Probe]] = {
    "tour": tour.figures,
    "measure": measure_cost.figures,
    "save": save_cost.figures,
    "data": data_generation.figures,
    "speed": data_speed.figures,
    "repeats": repeats.figures,
    "memory": memory.figures,
    "expand": whole_process.expand,
    "plan": whole_process.plan,
}

EXIT_BROKEN: Final = 2


def main(arguments: Sequence[str] | None = None, probes: Mapping[str, Probe] = PROBES) -> int:
    """Measures what `--only` names of the probes, and returns the exit code."""
    options = _parser(probes).parse_args(arguments)
    # It would have every child compile what it imports, and the side that imports more suffer more.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    setting = Setting(rounds=options.rounds, upstream=_upstream(options.upstream_python))
    figures: list[Figure] = []
    broken: dict[str, str] = {}
    for name in options.only or probes:
        try:
            figures += probes[name](setting)
        except ProbeFailed as failure:
            broken[name] = str(failure)
            say(f"error: {name} could not be measured: {failure}")
    plain = {
        "python": sys.version,
        "cpu_count": os.cpu_count(),
        "load_average": os.getloadavg(),
        "figures": [
            {**dataclasses.asdict(figure), "ratios": figure.ratios, "met": figure.met}
            for figure in figures
        ],
        "broken": broken,
    }
    code = end(figures, paired_table(figures), file=options.json, plain=plain)
    return EXIT_BROKEN if broken else code


def _parser(probes: Mapping[str, Probe]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perf.harness", description=__doc__)
    parser.add_argument(
        "--upstream-python",
        metavar="PATH",
        help="interpreter with orbax-checkpoint, clu, tensorflow-cpu and tensorboard",
    )
    parser.add_argument(
        "--rounds", type=positive, default=3, metavar="N", help="pairs per figure (default 3)"
    )
    parser.add_argument(
        "--only", nargs="+", choices=tuple(probes), metavar="NAME", help=", ".join(probes)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every raw pair here")
    return parser


def _upstream(python: str | None) -> Upstream | None:
    if python is None:
        return None
    try:
        return find_upstream(python)
    except ProbeFailed as failure:
        say(f"note: no upstream framework, so our own figures alone: {failure}")
        return None


if __name__ == "__main__":
    sys.exit(main())
