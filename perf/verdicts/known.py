"""Known answers of a comparison: one that is made with real saves, a slow-down planted or none.

`python -m perf.verdicts --slower SHARE [--trial N]`

The margin is that of the suite's gate. Exit code 0 when a slow-down beyond it ends in REGRESSION,
and one below it, or none, in anything else; the load, which nothing slows, may not regress. 1 when
it does not, and 2 when nothing was compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis.verdicts import OperationVerdict, VerdictReport, read_verdicts
from orbax_bench_core.config import PER_ARM
from orbax_bench_core.records import RunDirectory

SUITE: Final = Path(__file__).with_name("slowed.yaml")
_TAIL: Final = 500


def compare(slower: float) -> VerdictReport | str:
    """Compares the save with one that is slower; returns what went wrong if there is no verdict."""
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as folder:
        command = [sys.executable, "-m", "orbax_bench_core.cli", "ab", str(SUITE), "-o", folder]
        done = subprocess.run(
            [*command, "--candidate", f"slower={slower}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if not Path(folder, "verdicts.json").is_file():
            return (done.stdout + done.stderr)[-_TAIL:]
        return read_verdicts(RunDirectory(folder))


def wrong(verdicts: VerdictReport, slower: float) -> str:
    """Returns what a comparison got wrong, knowing the answer; empty when it is right."""
    words = {found.operation: found.verdict.word for found in verdicts.points[0].operations}
    regressed = [operation for operation, word in words.items() if word == "REGRESSION"]
    expected = ["save"] if slower > verdicts.gate.margin else []
    return "" if regressed == expected else f"wrong, for {expected or 'nothing'} regresses"


def _said(found: OperationVerdict) -> str:
    verdict = found.verdict
    if verdict.low is None or verdict.high is None:
        return f"{found.operation} {verdict.word}"
    interval = f"{verdict.ratio:.3f} [{verdict.low:.3f}, {verdict.high:.3f}]"
    return f"{found.operation} {verdict.word} {interval}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes one comparison, prints what came out, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.verdicts", description=__doc__)
    parser.add_argument("--slower", type=float, required=True, metavar="SHARE")
    parser.add_argument("--trial", type=int, default=0)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    verdicts = compare(options.slower)
    took = time.monotonic() - began
    if isinstance(verdicts, str):
        print(verdicts)
        return 2
    (point,) = verdicts.points
    mistake = wrong(verdicts, options.slower)
    said = "; ".join(map(_said, point.operations))
    print(
        f"trial {options.trial}, {options.slower:g} planted: {verdicts.word} ({point.endpoint}) "
        f"after {PER_ARM * point.blocks} per arm and {took:.0f} s: {said}"
        + (f": {mistake}" if mistake else "")
    )
    return 1 if mistake else 0
