"""Overhead of a local pipeline beside the points that it measures.

python -m perf.pipeline [--points N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

from perf.process import SIMULATED

TARGET_S: Final = 0.5
_POLL_S: Final = 0.02
_WORKER: Final = "orbax_bench_core.worker"


def suite(points: int) -> str:
    """Returns a suite of so many small points, one repeat each."""
    sizes = ", ".join(
        f"{{name: c{width}, spec: {{w: {{dtype: float32, shape: [{width}]}}}}}}"
        for width in range(8, 8 + points)
    )
    return (
        "suite_name: many small points\n"
        "execution: {warmups: 0}\n"
        f"checkpoint_configs: [{sizes}]\n"
        "benchmarks: [{generator: save_restore, options: {}}]\n"
    )


def measure(points: int) -> tuple[float, float]:
    """Runs the sweep pipeline here.

    Returns:
        Seconds of the whole command, and seconds of those in which no worker was alive: all that
        is not the points themselves, which are a worker's start, its repeat and its end.

    Raises:
        RuntimeError: The pipeline failed.
    """
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder:
        file = Path(folder) / "suite.yaml"
        file.write_text(suite(points))
        command = [sys.executable, "-m", "orbax_bench_core.cli", "pipeline", "run", str(file)]
        environment = {name: value for name, value in os.environ.items() if name not in SIMULATED}
        log = Path(folder) / "log"
        with log.open("w") as output:
            started = time.perf_counter()
            process = subprocess.Popen(
                [
                    *(*command, "--output-directory", f"{folder}/run"),
                    *("--set", "measure_limits=false"),
                ],
                stdout=output,
                stderr=output,
                env=environment,
            )
            alone = _without_worker(process)
            total = time.perf_counter() - started
        if process.returncode:
            raise RuntimeError(f"the pipeline failed:\n{log.read_text()}")
    return total, alone


def _without_worker(process: subprocess.Popen[bytes]) -> float:
    whole, alone, before = psutil.Process(process.pid), 0.0, time.perf_counter()
    while process.poll() is None:
        time.sleep(_POLL_S)
        now = time.perf_counter()
        if not _has_worker(whole):
            alone += now - before
        before = now
    return alone


def _has_worker(process: psutil.Process) -> bool:
    try:
        return any(_is_worker(child) for child in process.children(recursive=True))
    except psutil.NoSuchProcess:
        return False


def _is_worker(process: psutil.Process) -> bool:
    try:
        return _WORKER in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def main() -> int:
    """Prints the figure, and returns 1 when it misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=40, help="Small points to measure.")
    points = parser.parse_args().points
    total, alone = measure(points)
    each = alone / points
    print(f"{points} points in {total:.1f} s, {(total - alone) / points:.2f} s each with a worker")
    print(f"beside the points: {alone:.1f} s, {each:.2f} s each; target {TARGET_S} s")
    return int(each > TARGET_S)


if __name__ == "__main__":
    sys.exit(main())
