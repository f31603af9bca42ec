"""Cost of judging a thousand points from their records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from perf import large_runs
from perf.pairing import Figure
from perf.probe import Setting
from perf.whole_process import Bounds, command_figures

BOUNDS: Final = Bounds(seconds=15.0, megabytes=500.0, cpu=True)

NUM_POINTS: Final = 1_000
BLOCKS: Final = 5


def figures(setting: Setting) -> list[Figure]:
    """Judges a comparison of two operations of each point, in a whole process each time."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        setting.say(f"compare: writes the records of {NUM_POINTS:,} points")
        large_runs.make_comparison(root, NUM_POINTS, blocks=BLOCKS)
        return command_figures(
            setting,
            f"orbax-bench compare, {NUM_POINTS:,} points, {4 * BLOCKS} repeats",
            *("compare", str(root), "--allow-inconclusive"),
            bounds=BOUNDS,
            is_right=lambda said: f"{NUM_POINTS} points" in said,
        )
