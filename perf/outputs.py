"""Cost of the outputs of ten thousand points, and sizes of pages."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from perf import large_runs
from perf.pairing import Figure
from perf.probe import Setting
from perf.process import our_command, run
from perf.whole_process import Bounds, command_figures

BOUNDS: Final = Bounds(seconds=90.0, megabytes=500.0, cpu=True)

NUM_POINTS: Final = 10_000
REPEATS: Final = 10
METRICS: Final = 40


def figures(setting: Setting) -> list[Figure]:
    """Makes every output of a large run from its records, in a whole process each time."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        setting.say(f"report: writes the records of {NUM_POINTS:,} points")
        large_runs.make_sweep(root, NUM_POINTS, repeats=REPEATS, metrics=METRICS)
        return command_figures(
            setting,
            f"orbax-bench report, {NUM_POINTS:,} points x {REPEATS} repeats x {METRICS} metrics",
            *("report", str(root)),
            bounds=BOUNDS,
            is_right=lambda _: _made(root / "tensorboard"),
        )


def pages(setting: Setting) -> list[Figure]:
    """Writes the pages of 200 points and of two verdicts; sizes do not vary, so once."""
    with tempfile.TemporaryDirectory() as folder:
        setting.say("pages: once")
        sweep, pair = Path(folder) / "sweep", Path(folder) / "pair"
        large_runs.make_sweep(sweep, 200, repeats=REPEATS, metrics=METRICS)
        large_runs.make_comparison(pair, 2, metrics=2)  # each more takes 0.1 KB
        verdicts = Path(folder) / "verdicts.html"
        run(our_command("report", str(sweep)))
        run(our_command("compare", str(pair), "--html", str(verdicts)))
        return [
            _size("report.html, 200 points", sweep / "report.html", 1000.0),
            _size("verdicts.html, 2 points", verdicts, 60.0),
        ]


def _made(event_files: Path) -> bool:
    """Returns whether there are event files, and removes them: a report leaves what is as it is."""
    made = event_files.is_dir()
    shutil.rmtree(event_files, ignore_errors=True)
    return made


def _size(name: str, file: Path, most: float) -> Figure:
    return Figure(
        name=f"{name}: size",
        unit="KB",
        ours=(file.stat().st_size / 1e3,),
        target=most,
        limits="value",
    )
