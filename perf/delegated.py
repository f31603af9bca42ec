"""Figures of the programs beside this one, `perf.measure_cost` and `perf.data_generation`."""

from __future__ import annotations

import json
import re
import statistics
import sys
from typing import Final

from perf import measure_cost
from perf.pairing import Figure, Pairs, alternate
from perf.probe import Setting
from perf.process import ROOT, SIMULATED, ProbeFailed, run

COST_TARGET: Final = 0.2
OWN_TIME_TARGET_US: Final = 10.0
DATA_TIME_TARGET: Final = 1 / 5
DATA_MEMORY_TARGET: Final = 1 / 3

_COST: Final = "cost of an empty block: default"
_OWN_TIME: Final = f"its {measure_cost.TIME}"
_DATA_LINE: Final = re.compile(
    r"^\s*(?P<side>ours|upstream)\s+(?P<s>[\d.]+) s\s+(?P<mib>\d+) MiB", re.MULTILINE
)


def measuring(setting: Setting) -> list[Figure]:
    """Measures what an empty block costs, and what it takes for its own time.

    The upstream framework logs at INFO, as its runner has it, to a discarded stderr.
    """
    upstream = setting.upstream
    pairs = alternate(
        setting.rounds,
        lambda: _blocks(sys.executable, measure_cost.OURS),
        None if upstream is None else lambda: _blocks(upstream.python, measure_cost.UPSTREAM),
        say=lambda line: setting.say(f"measure: {line}"),
    )
    cost, their_cost = pairs.values(lambda block: 1e6 * statistics.fmean(block[_COST]))
    own, their_own = pairs.values(lambda block: 1e6 * statistics.fmean(block[_OWN_TIME]))
    return [
        Figure(
            name="empty measure(): mean cost",
            unit="µs",
            ours=cost,
            upstream=their_cost,
            target=COST_TARGET,
            limits="ratio",
        ),
        Figure(
            name="empty measure(): its own time_s",
            unit="µs",
            ours=own,
            upstream=their_own,
            target=OWN_TIME_TARGET_US,
            limits="value",
        ),
    ]


def data_generation(setting: Setting) -> list[Figure]:
    """Measures time and extra memory of one gibibyte of bfloat16."""
    python = None if setting.upstream is None else setting.upstream.python
    rounds = alternate(
        setting.rounds,
        lambda: _generate(python),
        None,
        say=lambda line: setting.say(f"data: {line} (and upstream)" if python else f"data: {line}"),
    )
    pairs = Pairs(
        ours=tuple(sides["ours"] for sides in rounds.ours),
        upstream=tuple(sides["upstream"] for sides in rounds.ours) if python else None,
    )
    seconds, their_seconds = pairs.values(lambda measured: measured[0])
    memory, their_memory = pairs.values(lambda measured: measured[1])
    return [
        Figure(
            name="1 GiB of data: time",
            unit="s",
            ours=seconds,
            upstream=their_seconds,
            target=DATA_TIME_TARGET,
            limits="ratio",
        ),
        Figure(
            name="1 GiB of data: extra peak memory",
            unit="MiB",
            ours=memory,
            upstream=their_memory,
            target=DATA_MEMORY_TARGET,
            limits="ratio",
        ),
    ]


def data_sides(printed: str) -> dict[str, tuple[float, float]]:
    """Reads seconds and MiB per side from what `perf.data_generation` printed.

    Raises:
        ProbeFailed: There is no such line.
    """
    found = {
        line["side"]: (float(line["s"]), float(line["mib"]))
        for line in _DATA_LINE.finditer(printed)
    }
    if "ours" not in found:
        raise ProbeFailed(f"perf.data_generation printed no figures: {printed[:200]!r}")
    return found


def _blocks(python: str, side: str) -> measure_cost.Figures:
    """Has `perf.measure_cost` measure one side in a fresh process."""
    finished = run(
        [python, str(ROOT / "perf" / "measure_cost.py"), "--worker", side],
        environment={**SIMULATED, "PYTHONPATH": str(ROOT)},
        keep_output=True,
    )
    found: measure_cost.Figures = json.loads(finished.output.splitlines()[-1])
    return found


def _generate(upstream_python: str | None) -> dict[str, tuple[float, float]]:
    """Has `perf.data_generation` measure each side once, in turn."""
    command = [sys.executable, "-m", "perf.data_generation", "--rounds", "1"]
    if upstream_python is not None:
        command += ["--upstream-python", upstream_python]
    finished = run(command, environment={"PYTHONPATH": str(ROOT)}, keep_output=True)
    return data_sides(finished.output)
