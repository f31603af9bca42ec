"""Our own speed against the upstream framework's, as paired ratios with their targets.

`python -m perf.harness [--upstream-python PATH] [--rounds N] [--only NAME ...] [--json FILE]`

Without `--upstream-python`, or where the framework cannot be imported there, our own figures are
printed alone. Exit codes: 0 no target was missed, 1 a target was missed, 2 something could not be
measured because it did not work.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from perf import (
    data_generation,
    data_speed,
    expansion,
    measure_cost,
    memory,
    planning,
    repeats,
    save_cost,
    tour,
)
from perf.pairing import Figure, spread
from perf.probe import Probe, Setting
from perf.process import ProbeFailed
from perf.upstream import Upstream, find_upstream

PROBES: Final[Mapping[str, Probe]] = {
    "tour": tour.figures,
    "measure": measure_cost.figures,
    "save": save_cost.figures,
    "data": data_generation.figures,
    "speed": data_speed.figures,
    "repeats": repeats.figures,
    "memory": memory.figures,
    "expand": expansion.figures,
    "plan": planning.figures,
}

EXIT_MISSED: Final = 1
EXIT_BROKEN: Final = 2

_WIDTH: Final = 140


def main(arguments: Sequence[str] | None = None, probes: Mapping[str, Probe] = PROBES) -> int:
    """Measures, prints the table, and returns the exit code.

    Args:
        arguments: Command line without the program; None takes the process's own.
        probes: What can be measured, by the name that `--only` takes.
    """
    options = _parser(probes).parse_args(arguments)
    # It would have every child compile what it imports, and the side that imports more suffer more.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    setting = Setting(rounds=options.rounds, upstream=_upstream(options.upstream_python), say=_say)
    figures: list[Figure] = []
    broken: dict[str, str] = {}
    for name in options.only or probes:
        try:
            figures += probes[name](setting)
        except ProbeFailed as failure:
            broken[name] = str(failure)
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table(figures))
    for name, reason in broken.items():
        _say(f"error: {name} could not be measured: {reason}")
    if options.json is not None:
        options.json.write_text(json.dumps(report(figures, broken), indent=1) + "\n")
    if broken:
        return EXIT_BROKEN
    return EXIT_MISSED if any(figure.met is False for figure in figures) else 0


def table(figures: Sequence[Figure]) -> Table:
    """Returns the figures as a table: medians, with the smallest and largest in brackets."""
    shown = Table("figure", "ours", "beside", "ratio", "target", "met?")
    for figure in figures:
        limit = f"{figure.target:.3g}{' x' if figure.limits == 'ratio' else f' {figure.unit}'}"
        shown.add_row(
            f"{figure.name} ({figure.unit})",
            _spread(figure.ours),
            _spread(figure.upstream),
            _spread(figure.ratios),
            "–" if math.isinf(figure.target) else f"≤ {limit}",
            {True: "yes", False: "[red]NO[/]", None: "–"}[figure.met],
        )
    return shown


def report(figures: Sequence[Figure], broken: Mapping[str, str]) -> dict[str, Any]:
    """Returns every raw value and verdict as plain data."""
    return {
        "python": sys.version,
        "cpu_count": os.cpu_count(),
        "load_average": os.getloadavg(),
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "ours": figure.ours,
                "upstream": figure.upstream,
                "ratios": figure.ratios,
                "target": figure.target,
                "limits": figure.limits,
                "met": figure.met,
            }
            for figure in figures
        ],
        "broken": dict(broken),
    }


def _parser(probes: Mapping[str, Probe]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="perf.harness", description=__doc__)
    parser.add_argument(
        "--upstream-python",
        metavar="PATH",
        help="interpreter with orbax-checkpoint, clu, tensorflow-cpu and tensorboard",
    )
    parser.add_argument(
        "--rounds", type=_positive, default=3, metavar="N", help="pairs per figure (default 3)"
    )
    parser.add_argument(
        "--only", nargs="+", choices=tuple(probes), metavar="NAME", help=", ".join(probes)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every raw pair here")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _upstream(python: str | None) -> Upstream | None:
    if python is None:
        return None
    try:
        return find_upstream(python)
    except ProbeFailed as failure:
        _say(f"note: no upstream framework, so our own figures alone: {failure}")
        return None


def _spread(values: Sequence[float] | None) -> str:
    if values is None:
        return "–"
    found = spread(values)
    return f"{found.median:.3g} [{found.minimum:.3g}–{found.maximum:.3g}]"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
