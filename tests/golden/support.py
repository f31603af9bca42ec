"""Golden data, and the one place where its tests reach into the product's modules."""

import contextlib
import dataclasses
import datetime
import difflib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

DATA = Path(__file__).parent / "data"
NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
RUN_ID = "abcdef012345"
CAPTURE_ID = "20260102T120000Z-0123abcd"
PROMOTION_ID = "0123abcd"
REWRITE = "pytest tests/golden --rewrite-golden"
MOST_LINES = 60


def check(name: str, text: str, *, rewrite: bool = False) -> None:
    """Fails unless `text` is what the file `name` of the golden data says; or writes it there."""
    file = DATA / name
    if rewrite:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
        return
    # Bytes, since reading text would hide a change of line ends.
    wanted = file.read_bytes().decode() if file.exists() else ""
    if wanted != text:
        raise AssertionError(_difference(name, wanted, text))


def _difference(name: str, wanted: str, found: str) -> str:
    lines = list(
        difflib.unified_diff(
            wanted.splitlines(keepends=True),
            found.splitlines(keepends=True),
            f"tests/golden/data/{name}",
            "found",
            n=2,
        )
    )
    shown = [line.rstrip("\n") for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} more lines")
    hint = f"If this change is meant, run `{REWRITE}` and review the diff."
    return "\n".join([f"{name} differs from the golden data.", *shown, hint])


# The command line, in this process.


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def orbax_bench(*arguments: object) -> Outcome:
    """Runs a command as its script does."""
    from orbax_bench_core.cli.main import main

    return called(main, *arguments)


def called(main: Callable[[], None], *arguments: object) -> Outcome:
    """Calls what takes the arguments of the process, and ends it."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["orbax-bench", *map(str, arguments)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = before
    assert isinstance(code, int)
    return Outcome(code, out.getvalue(), err.getvalue())


def said(*arguments: object) -> str:
    """Returns what a command prints that succeeds."""
    outcome = orbax_bench(*arguments)
    assert outcome.code == 0, outcome
    return outcome.out


# What no command line reaches.


def swept(file, *overrides):
    """Returns what a suite file sweeps over: a line per point or pair, and what else is said."""
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.sweep import expand

    found = expand(load_suite(str(file), overrides))
    lines = [f"{point.id}  {point.name}  {point.label}" for point in found.points]
    lines += [f"skipped: {skip.point.id}  {skip.reason}" for skip in found.skipped]
    lines += [f"note: {note}" for note in found.notes]
    return "".join(f"{line}\n" for line in lines)


def entries(suite):
    """Returns what the text of a suite sweeps over: points, or pairs when it has arms."""
    return _expansion(suite).points


def arrangement(run_id, pair_id, block):
    """Returns the order of the arms in a block."""
    from orbax_bench_core.sweep import arrangement as order

    return order(run_id, pair_id, block)


def sides(entry):
    """Returns the points that an entry measures, by arm; by None without arms."""
    from orbax_bench_core.sweep import sides

    return sides(entry)


def start_run(folder, suite, *, run_id=RUN_ID, created_at=NOON):
    """Begins a run of the text of a suite in a folder, with a fixed id and clock."""
    run = _run(folder)
    info = run.start(_loaded(suite), _expansion(suite))
    run.write_info(info.model_copy(update={"run_id": run_id, "created_at": created_at}))


def write_record(folder, entry, repeat, **fields):
    """Writes the record of one repeat into a run, and returns the file."""
    from orbax_bench_core.records import Record

    known = {
        "run_id": RUN_ID,
        "suite": "golden",
        "point_id": entry.id,
        "point_name": entry.name,
        "point": entry,
        "repeat": repeat,
        "warmup": False,
        "status": "passed",
        "started_at": NOON,
        "duration_s": 1.5,
    }
    before = set(Path(folder).rglob("host_*.json"))
    _run(folder).write_record(Record(**{**known, **fields}))
    (file,) = set(Path(folder).rglob("host_*.json")) - before
    return file


def write_limits(folder, limits):
    """Writes the limits of a machine into a run."""
    from orbax_bench_core.limits import Limits, write

    write(_run(folder), Limits.model_validate(limits))


def publish_verdicts(folder):
    """Judges a paired run and writes what it found, as `ab` does at its end."""
    from orbax_bench_core.analysis.verdicts.paired import judge_run
    from orbax_bench_core.publishing import publish_verdicts as publish

    run = _run(folder)
    publish(run, judge_run(run))


def written_again(kind, text):
    """Returns what a file of some kind reads like after it was read and written."""
    from orbax_bench_core.analysis.async_study import AsyncStudy
    from orbax_bench_core.analysis.noise import Passport
    from orbax_bench_core.analysis.verdicts import VerdictReport
    from orbax_bench_core.baselines import Capture
    from orbax_bench_core.baselines.captures import Baseline, Promotion
    from orbax_bench_core.limits import Limits
    from orbax_bench_core.lineage.manifest import Manifest
    from orbax_bench_core.records import Record, RunInfo

    models = {
        "record": Record,
        "run": RunInfo,
        "baseline": Baseline,
        "capture": Capture,
        "promotion": Promotion,
        "passport": Passport,
        "async_study": AsyncStudy,
        "limits": Limits,
        "lineage": Manifest,
        "verdicts": VerdictReport,
    }
    return models[kind].model_validate_json(text).model_dump_json(indent=2 if kind == "run" else 1)


def _run(folder):
    from orbax_bench_core.records import RunDirectory

    return RunDirectory(str(folder))


def _loaded(suite):
    from orbax_bench_core.config import parse_suite

    return parse_suite(suite, "suite.yaml")


def _expansion(suite):
    from orbax_bench_core.sweep import expand_here

    return expand_here(_loaded(suite))


# Texts without what differs from one machine or day to the next.

_FLOAT = re.compile(r"-?\d+\.\d{8,}(?:e[-+]?\d+)?")


def rounded(text: str) -> str:
    """Returns a text whose computed numbers have ten digits.

    Vector instructions of processors differ in the last digits of logarithms.
    """
    return _FLOAT.sub(lambda found: _ten_digits(float(found[0])), text)


def _ten_digits(value: float) -> str:
    return re.sub(r"e([-+])0*", r"e\1", repr(float(f"{value:.10g}"))).replace("e+", "e")


def dated(text: str) -> str:
    """Returns JSON that says that it was made at noon."""
    noon = NOON.isoformat().replace("+00:00", "Z")
    text = re.sub(r'("(?:captured|promoted|judged|made)_at": )"[^"]*"', rf'\1"{noon}"', text)
    return re.sub(r"\b\d{8}T\d{6}Z-[0-9a-f]{8}\b", CAPTURE_ID, text)
