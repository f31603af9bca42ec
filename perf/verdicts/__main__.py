"""Known answers of comparisons: real saves, with something planted in the candidate's or nothing.

`python -m perf.verdicts KIND=SHARE [--nights N] [--trial N]`

`slower` beyond the margin of the gate ends in REGRESSION of the save, below it in anything else.
`stalls` and `after`, which holds up the save after it, may not end in PASS. The load, which nothing
slows, may not regress. With `--nights` there are so many comparisons, and `orbax-bench history`
names a candidate that `fails` or `stalls`. Exit codes: 0 right, 1 wrong, 2 nothing was compared.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis.verdicts import OperationVerdict, VerdictReport, read_verdicts
from orbax_bench_core.config import PER_ARM
from orbax_bench_core.records import RunDirectory
from perf.process import cli

SUITE: Final = Path(__file__).with_name("slowed.yaml")
_TAIL: Final = 500


def compare(planted: str, folder: Path) -> VerdictReport | str:
    """Compares the save with a planted one; returns what went wrong if there is no verdict."""
    done = cli("ab", SUITE, "-o", folder, "--candidate", planted)
    if not (folder / "verdicts.json").is_file():
        return (done.stdout + done.stderr)[-_TAIL:]
    return read_verdicts(RunDirectory(str(folder)))


def wrong(verdicts: VerdictReport, kind: str, share: float) -> str:
    """Returns what a comparison got wrong, knowing the answer; empty when it is right."""
    words = {found.operation: found.verdict.word for found in verdicts.points[0].operations}
    regressed = [operation for operation, word in words.items() if word == "REGRESSION"]
    if kind == "slower":
        expected = ["save"] if share > verdicts.gate.margin else []
        return "" if regressed == expected else f"wrong, for {expected or 'nothing'} regresses"
    if "load" in regressed:
        return "wrong, for nothing slows the load"
    passed = verdicts.word == "PASS" and kind != "fails"  # one night cannot see every failure
    return "wrong, for it may not pass" if passed else ""


def over_nights(planted: str, nights: int, folder: Path) -> tuple[int, str]:
    """Makes some comparisons; returns the exit code, and what the history of them says."""
    words = []
    for night in range(nights):
        verdicts = compare(planted, folder / f"night{night:02}")
        if isinstance(verdicts, str):
            return 2, verdicts
        words.append(verdicts.word)
    (series, *_) = json.loads(cli("history", folder, "--json").stdout)["series"]
    said = [
        f"{each['kind']} named after night {each['last'] + 1}: {each['candidate']} and "
        f"{each['baseline']} of {each['operations']}"
        for each in series["excesses"]
    ]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return int(not said), f"{counts}; {'; '.join(said) or 'nothing named'}"


def _said(found: OperationVerdict) -> str:
    verdict = found.verdict
    if verdict.low is None or verdict.high is None:
        return f"{found.operation} {verdict.word}"
    interval = f"{verdict.ratio:.3f} [{verdict.low:.3f}, {verdict.high:.3f}]"
    return f"{found.operation} {verdict.word} {interval}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes one comparison, prints what came out, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.verdicts", description=__doc__)
    parser.add_argument("planted", metavar="KIND=SHARE")
    parser.add_argument("--nights", type=int, default=0)
    parser.add_argument("--trial", type=int, default=0)
    options = parser.parse_args(arguments)
    kind, _, share = options.planted.partition("=")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="orbax-bench-perf-") as place:
        if options.nights:
            code, said = over_nights(options.planted, options.nights, Path(place))
        else:
            code, said = _judged(compare(options.planted, Path(place, "run")), kind, float(share))
    took = time.monotonic() - began
    print(f"trial {options.trial}, {options.planted}, {took:.0f} s: {said}")
    return code


def _judged(verdicts: VerdictReport | str, kind: str, share: float) -> tuple[int, str]:
    if isinstance(verdicts, str):
        return 2, verdicts
    (point,) = verdicts.points
    mistake = wrong(verdicts, kind, share)
    said = "; ".join(map(_said, point.operations))
    after = f"after {PER_ARM * point.blocks} per arm"
    return int(bool(mistake)), f"{verdicts.word} ({point.endpoint}) {after}: {said} {mistake}"


if __name__ == "__main__":
    sys.exit(main())
