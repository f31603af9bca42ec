"""Attribution of a failure: whether the host that was frozen or killed is the one that is named.

python -m perf.liveness [--trials N] [--trial NUMBER]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from perf.process import SIMULATED

SIGNALS: Final = {signal.SIGSTOP: "Frozen", signal.SIGKILL: "WorkerDied"}
HOSTS: Final = 2
_STRIKES: Final = tuple(itertools.product(SIGNALS, range(HOSTS)))
_SUITE: Final = """
suite_name: liveness
num_repeats: 30
execution: {processes: 2, timeout_s: 120, retries: 1, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [256, 256], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {}}]
"""
_POLL_S: Final = 0.02
_PATIENCE_S: Final = 180.0


def trial(number: int) -> str:
    """Freezes or kills one of two real workers in the middle of a run, and reads who was blamed.

    Four trials in a row freeze and kill each of the two hosts once, at a moment that is drawn with
    `number` as the seed.

    Args:
        number: Which trial.

    Returns:
        What was wrong; empty when the struck host is named, its peer is recorded as a peer, the
        retry was shown, and the run passed all the same.
    """
    strike, host = _STRIKES[number % len(_STRIKES)]
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder:
        suite, output = Path(folder, "suite.yaml"), Path(folder, "output")
        suite.write_text(_SUITE)
        command = [sys.executable, "-m", "orbax_bench_core.cli", "run", str(suite)]
        flags = ["--output-directory", f"{folder}/run", "--no-limits", "--no-lock"]
        environment = {name: value for name, value in os.environ.items() if name not in SIMULATED}
        with output.open("w") as log:
            process = subprocess.Popen(
                [*command, *flags], stdout=log, stderr=log, env={**environment, "COLUMNS": "200"}
            )
        try:
            _strike(process, Path(folder, "run"), strike, host, random.Random(number))
            code = process.wait(_PATIENCE_S)
        except (TimeoutError, subprocess.TimeoutExpired) as late:
            return f"trial {number}: {late}"
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        found = _complaint(Path(folder, "run"), output.read_text(), code, SIGNALS[strike], host)
        return found and f"trial {number} ({strike.name} to host {host}): {found}"


def _strike(
    process: subprocess.Popen[bytes],
    run: Path,
    strike: signal.Signals,
    host: int,
    draw: random.Random,
) -> None:
    """Sends the signal to a host's worker, some time after the first repeat has ended."""
    deadline = time.monotonic() + _PATIENCE_S
    while not list(run.glob("records/*/repeat_0/host_1.json")):
        if time.monotonic() > deadline or process.poll() is not None:
            raise TimeoutError("the first repeat did not end")
        time.sleep(_POLL_S)
    time.sleep(draw.uniform(0, 0.5))
    os.kill(_worker(process.pid, host), strike)


def _worker(orchestrator: int, host: int) -> int:
    """Returns the process id of the worker of a host."""
    for child in psutil.Process(orchestrator).children():
        command = child.cmdline()
        if "--setup" in command:
            setup = json.loads(command[command.index("--setup") + 1])
            if setup["process_id"] == host:
                return child.pid
    raise TimeoutError(f"there is no worker of host {host}")


def _complaint(run: Path, output: str, code: int, kind: str, host: int) -> str:
    expected = {host: kind, 1 - host: "PeerFailed"}
    blamed = {record["host"]: _types(record["attempts"]) for record in _struck(run)}
    if blamed != {one: [error] for one, error in expected.items()}:
        return f"attempts are {blamed}, not {expected}"
    if code != 0:
        return f"the run ended with exit code {code}"
    told = re.search(rf"is tried again: (host \d+: )?{kind}", output)
    return "" if told else "no line told of the retry"


def _struck(run: Path) -> Iterator[dict[str, Any]]:
    """Yields the records of what was tried more than once."""
    for path in run.glob("records/*/repeat_*/host_*.json"):
        record = json.loads(path.read_text())
        if record["attempts"]:
            yield record


def _types(attempts: list[dict[str, Any]]) -> list[str]:
    return [attempt["error"]["type"] for attempt in attempts]


def main() -> int:
    """Makes trials in a row, and prints how many named the right host."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--trial", type=int, help="make only the one with this number")
    options = parser.parse_args()
    if options.trial is not None:
        complaint = trial(options.trial)
        print(complaint or "the right host was named")
        return int(bool(complaint))
    trials, wrong = options.trials, 0
    for number in range(trials):
        complaint = trial(number)
        wrong += bool(complaint)
        print(complaint or f"trial {number}: right", flush=True)
    print(f"the right host was named in {trials - wrong} of {trials}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
