"""Runner of counts, which goes on where it was stopped.

`python -m perf.counts [--only NAME ...] [--most N] [--state DIR] [--list]`

Each trial is a line of JSON in `build/counts/<name>.jsonl`; trials that are there are not made
again, and several processes share what is left. Exit codes: 0 every count is complete and holds, 1
one does not hold, 4 some are incomplete.
"""

import argparse
import contextlib
import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from perf.counts.table import COUNTS, Count
from perf.lines import add_line, read_lines

EXIT_FAILED: Final = 1
EXIT_INCOMPLETE: Final = 4

_STATE: Final = Path("build/counts")
_SAID: Final = 300


def main(arguments: Sequence[str] | None = None, counts: Sequence[Count] = COUNTS) -> int:
    """Makes the trials that are left of some counts, and returns the exit code."""
    options = _parser(counts).parse_args(arguments)
    chosen = [count for count in counts if not options.only or count.name in options.only]
    left = options.most
    with contextlib.suppress(KeyboardInterrupt):  # every trial that ended is kept
        for count in [] if options.list else chosen:
            left = _make(count, options.state, left)
    codes = [_report(count, options.state) for count in chosen]
    return EXIT_FAILED if EXIT_FAILED in codes else max(codes, default=0)


def _parser(counts: Sequence[Count]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf.counts", description=__doc__)
    names = [count.name for count in counts]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="these counts")
    parser.add_argument("--most", type=int, metavar="N", help="make at most N trials now")
    parser.add_argument("--state", type=Path, default=_STATE, help="where trials are kept")
    parser.add_argument("--list", action="store_true", help="only say what is done and left")
    return parser


def _make(count: Count, state: Path, left: int | None) -> int | None:
    """Makes the trials that are missing, at most `left`; returns how many may still be made."""
    for trial in range(count.trials):
        if left == 0:
            break
        with _claimed(count, state, trial) as ours:
            if not ours or trial in {made["trial"] for made in read_lines(count.file(state))}:
                continue
            found = _try(count, trial)
            add_line(count.file(state), found)
        print(f"{count.name} {trial + 1}/{count.trials}: {_line(found)}", flush=True)
        left = None if left is None else left - 1
    return left


@contextlib.contextmanager
def _claimed(count: Count, state: Path, trial: int) -> Iterator[bool]:
    """Yields whether a trial is ours to make; another process with this state may be making it."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / f".{count.name}.{trial}").open("w") as claim:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    Path(claim.name).unlink(missing_ok=True)


def _try(count: Count, trial: int) -> dict[str, Any]:
    began = time.monotonic()
    try:
        done = subprocess.run(
            count.arguments(trial),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=count.timeout_s,
            check=False,
        )
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        code, output = -1, f"not done after {count.timeout_s:g} s"
    said = (output.strip().splitlines() or [""])[-1][:_SAID]
    took = round(time.monotonic() - began, 1)
    return {"trial": trial, "holds": code == 0, "code": code, "took_s": took, "said": said}


def _line(found: dict[str, Any]) -> str:
    return f"{'holds' if found['holds'] else 'FAILED'} ({found['took_s']} s): {found['said']}"


def _report(count: Count, state: Path) -> int:
    """Prints where a count stands, and returns its exit code."""
    trials = {trial["trial"]: trial for trial in read_lines(count.file(state))}
    failed = [trial for trial in trials.values() if not trial["holds"]]
    left = max(0, count.trials - len(trials))
    code = EXIT_FAILED if len(failed) > count.failures else EXIT_INCOMPLETE if left else 0
    word = {0: "holds", EXIT_FAILED: "FAILED", EXIT_INCOMPLETE: "open"}[code]
    print(f"{word:6}  {count.name}: {count.claim}")
    allowed = f", {count.failures} may" if count.failures else ""
    print(f"        {len(trials)} of {count.trials} trials, {len(failed)} failed{allowed}")
    for trial in failed[:3]:
        print(f"        trial {trial['trial']}: {trial['said']}")
    return code


if __name__ == "__main__":
    sys.exit(main())
