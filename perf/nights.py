"""Growth over months: history and morning page of many nights, their seconds and bytes.

`python -m perf.nights [--nights N] [--json FILE] [--keep DIR]`

One night is measured by `orbax-bench ab`, and copied with other dates and times: every file of a
night is as a run leaves it. Then the commands that read all of them are timed, the morning page
twice: its first time reads every record, all others what that has left beside it, as does `history`
of that folder. A night that ends reads its own records alone. Exit codes: 0 every limit is met, 1
one is not.
"""

import argparse
import datetime
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from perf.figure import EXIT_MISSED
from perf.probe import say
from perf.process import cli, our_command, run

NIGHTS: Final = 400
NOISE: Final = 0.03
PAGE_BYTES: Final = 1_000_000
_SUITE: Final = """
suite_name: nightly
checkpoint_config: {spec: {params: {dtype: float32, shape: [256, 256]}}}
benchmarks: [{generator: save_restore, options: {}}]
arms: {candidate: {options: {use_compression: false}}}
gate: {looks: [10], margin: 9.0}
"""
_LIMITS: Final = {
    "site --most 400, first, s": 60.0,
    "site --most 400, again, s": 8.0,
    "history --html, s": 8.0,
    "site, again, s": 8.0,
    "prune, s": 8.0,
    "history.html, MB": PAGE_BYTES / 1e6,
    "index.html of 400, MB": PAGE_BYTES / 1e6,
    "index.html, MB": PAGE_BYTES / 1e6,
}
"""Seconds of user and system together, and megabytes."""


def make_nights(folder: Path, count: int) -> None:
    """Measures one night and writes the others after it, a day apart, the last one of today."""
    suite = folder / "suite.yaml"
    suite.write_text(_SUITE)
    first = folder / "nightly" / "night-000"
    done = cli("ab", suite, "-o", first, "--quiet")
    if not (first / "verdicts.json").exists():
        raise RuntimeError(f"no night could be measured: {done.stderr}")
    files = [file for file in first.rglob("*") if file.is_file() and _counts(file, first)]
    read = {file.relative_to(first): file.read_bytes() for file in files}
    records = {name: json.loads(data) for name, data in read.items() if name.parts[0] == "records"}
    draw, today = random.Random(0), datetime.datetime.now(datetime.UTC)
    for night in range(1, count):
        begun = today - datetime.timedelta(days=count - night)
        target = folder / "nightly" / f"night-{night:03}"
        for name, data in read.items():
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if name in records:
                record = _of_night(records[name], night, begun, draw.gauss(1, NOISE))
                place.write_text(json.dumps(record))
            elif name.name == "run.json":
                info = json.loads(data) | {"run_id": f"night{night}"}
                place.write_text(json.dumps(info | {"created_at": begun.isoformat()}))
            else:
                place.write_bytes(data)


def _counts(file: Path, root: Path) -> bool:
    """Says whether a file is one of results; the data of checkpoints and leases are none."""
    first = file.relative_to(root).parts[0]
    return first == "records" or (file.parent == root and file.suffix in (".json", ".html"))


def _of_night(
    record: dict[str, Any], night: int, begun: datetime.datetime, factor: float
) -> dict[str, Any]:
    samples = [
        {**sample, "value": sample["value"] * factor} if sample.get("unit") == "s" else sample
        for sample in record["samples"]
    ]
    return record | {
        "run_id": f"night{night}",
        "started_at": begun.isoformat(),
        "samples": samples,
    }


def figures(folder: Path, nights: int) -> Iterator[tuple[str, float]]:
    """Times what reads all nights, and measures the pages; yields each with its name."""
    nightly = folder / "nightly"
    for name in ("site.json", "site-cards.json.gz"):
        (nightly / name).unlink(missing_ok=True)
    timed = {
        "site --most 400, first, s": ("site", nightly, "--most", nights),
        "site --most 400, again, s": ("site", nightly, "--most", nights),
        "history --html, s": ("history", nightly, "--html", folder / "history.html"),
    }
    for name, words in timed.items():
        yield name, _seconds(*words)
    yield "index.html of 400, MB", (nightly / "index.html").stat().st_size / 1e6
    yield "site, again, s", _seconds("site", nightly)
    yield "index.html, MB", (nightly / "index.html").stat().st_size / 1e6
    yield "history.html, MB", (folder / "history.html").stat().st_size / 1e6
    yield "prune, s", _seconds("prune", nightly)


def _seconds(*words: object) -> float:
    """Returns the user and system time of a command; what others do meanwhile does not count."""
    done = run(our_command(*map(str, words)), keep_output=True)
    say(f"{words[0]}: {done.seconds:.1f} s in all, {done.cpu_seconds:.1f} s of CPU")
    return done.cpu_seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the nights, and prints what reading them takes."""
    parser = argparse.ArgumentParser(prog="python -m perf.nights", description=__doc__)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--keep", type=Path, help="make the nights here, and leave them")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="nights-") as made:
        folder = given.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "nightly").exists():
            make_nights(folder, given.nights)
        found = dict(figures(folder, given.nights))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))
    missed = [name for name, value in found.items() if value > _LIMITS[name]]
    for name, value in found.items():
        said = "missed" if name in missed else "met"
        print(f"{name:28} {value:8.2f}   at most {_LIMITS[name]:5.1f}   {said}")
    return EXIT_MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
