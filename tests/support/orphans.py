"""One trial: a worker is frozen, its orchestrator killed, the run finished, the worker thawed.

`python -m tests.support.orphans [--real] [--mortal]` says how many final records were overwritten,
and exits with 1 when it is one or more.
"""

import argparse
import contextlib
import itertools
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.support.processes import FAKE_CLI, REAL_CLI, plain_environment, start_cli, wait_until

SCRIPTED = """
suite_name: orphan
num_repeats: 3
execution: {retries: 0, warmups: 0, keep_data: true, rounds_per_process: 3}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
  - {generator: tests.support.scripted.Scripted, options: {lasts_s: 0.2, save_s: [0.1, 0.2]}}
"""
REAL = """
suite_name: orphan
num_repeats: 3
execution: {retries: 0, warmups: 0, keep_data: true, rounds_per_process: 3}
checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 512]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""
_PATIENCE_S = 120.0
_THAWED_S = 60.0


class Trial(NamedTuple):
    """What became of a run.

    Attributes:
        code: Exit code of the command that finished it.
        output: What that command said.
        final: How many records were final before the orphan went on.
        overwritten: Paths of those among them that are something else now.
        survived: Whether the worker outlived its orchestrator.
    """

    code: int
    output: str
    final: int
    overwritten: tuple[str, ...]
    survived: bool


class TooLate(Exception):
    """The run was over before its worker could be frozen."""


def trial(folder: Path, *, real: bool = False, mortal: bool = False) -> Trial:
    """Makes one trial; what was tried too late is tried again. See `_trial`."""
    for number in itertools.count():
        own = folder / str(number)
        own.mkdir()
        with contextlib.suppress(TooLate):
            return _trial(own, real=real, mortal=mortal)
    raise AssertionError


def _trial(folder: Path, *, real: bool, mortal: bool) -> Trial:
    """Makes one trial.

    Args:
        folder: An empty folder.
        real: Whether the real worker is tried, whose kernel always ends it.
        mortal: Whether the kernel may end a fake worker with its parent; otherwise it lives on, as
            where the kernel cannot, and the fence alone stands in its way.

    Raises:
        TooLate: The run was over before its worker could be frozen: nothing was tried.
    """
    suite, run, cli = folder / "suite.yaml", folder / "out", REAL_CLI if real else FAKE_CLI
    suite.write_text(REAL if real else SCRIPTED)
    command = ("run", suite, "--output-directory", run, "--no-lock", "--no-limits")
    environment = plain_environment(**({} if real or mortal else {"OUTLIVE_PARENT": "1"}))
    orchestrator = start_cli(*command, cli=cli, environment=environment)
    wait_until(lambda: _begun(run))
    time.sleep(random.random() * 0.3)
    try:
        (worker,) = psutil.Process(orchestrator.pid).children()
    except ValueError:
        orchestrator.communicate()
        raise TooLate from None
    with contextlib.suppress(psutil.NoSuchProcess):
        worker.suspend()
    orchestrator.send_signal(signal.SIGKILL)
    orchestrator.wait()
    time.sleep(0.1)
    survived = worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    try:
        again = start_cli(*command, cli=cli, environment=environment)
        output, _ = again.communicate(timeout=_PATIENCE_S)
        before = _final(run)
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.resume()
    # A thawed worker writes what it has, or leaves.
    with contextlib.suppress(psutil.TimeoutExpired):
        psutil.wait_procs([worker], timeout=_THAWED_S)
    after = _final(run)
    assert orchestrator.stdout is not None
    orchestrator.stdout.close()
    changed = tuple(path for path in before if after.get(path) != before[path])
    return Trial(again.returncode, output, len(before), changed, survived)


def _begun(run: Path) -> bool:
    """Whether a repeat after the first finished one is under way."""
    records = list(run.glob("records/*/repeat_*/host_0.json"))
    return len(records) >= 1 and len(list(run.glob("*_*/repeat_*"))) > len(records)


def _final(run: Path) -> dict[str, bytes]:
    found = {str(path): path.read_bytes() for path in run.glob("records/*/*/host_*.json")}
    return {path: data for path, data in found.items() if b'"status": "passed"' in data}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--mortal", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="orbax-bench-orphan-") as folder:
        made = trial(Path(folder), real=options.real, mortal=options.mortal)
    print(
        f"{len(made.overwritten)} of {made.final} final records overwritten, "
        f"exit code {made.code}, the worker {'lived on' if made.survived else 'ended'}"
    )
    sys.exit(1 if made.overwritten or made.code != 0 else 0)


if __name__ == "__main__":
    main()
