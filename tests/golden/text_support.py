"""Commands as users type them, and run directories for them to read.

The one file of the text half of the golden tests that reaches into the product's modules.
"""

import dataclasses
import datetime
import getpass
import html.parser
import io
import itertools
import math
import os
import random
import re
import shlex
import socket
import sys
import uuid

import pytest

from orbax_bench_core import limits
from orbax_bench_core.cli import main as command_line
from orbax_bench_core.config import BLOCK_SIZE, load_suite
from orbax_bench_core.execute.pool import WorkerPool
from orbax_bench_core.measure import BLOCKED, LOST, LOST_STEPS, Sample
from orbax_bench_core.records import ErrorInfo, RunDirectory, State
from orbax_bench_core.sweep import BUILTINS, arrangement, benchmark_of, expand, load_class
from orbax_bench_core.sweep.expansion import SkippedPoint
from orbax_bench_pipelines.definitions import PIPELINES
from tests.support.limits import made_up

__all__ = ["BUILTINS", "PIPELINES", "benchmark_of", "load_class"]

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
NASTY = "kind=<script>alert(1)</script>|[red]&amp;"
GIB = 2**30
# Long enough for the folders of any test runner: what is laid out by width has one width then.
PATH_LENGTH = 150
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")

MASKS = {
    # As long as what they stand for, since tables are laid out by width.
    "id of a capture": (r"\b\d{8}T\d{6}Z-[0-9a-f]{8}\b", "YYYYMMDDThhmmssZ-facade--"),
    "begin of a new id": (r"\b\d{8}T\d{6}Z\b", "YYYYMMDDThhmmssZ"),
    "end of a new id": (r"\bfacade[0-9a-f]{2,}\b", "facade--"),
    "image of this version": (r"\borbax-bench:\d+\.\d+\.\d+[^\s'\"]*", "orbax-bench:VERSION"),
    # They hold the version of what wrote them.
    "own version": (r"\borbax-bench \d+\.\d+\.\d+\S*", "orbax-bench VERSION"),
    "time of a line in a log": (r"(?m)^\d\d:\d\d:\d\d (?=[ \d.✓✗–↻?a-z])", "HH:MM:SS "),
    "time that is left": (r"(?<=\d), (?:up to )?[\d.]+ (?:s|min|h) left(?= )", ""),
    # Whether somebody else measures on this machine just now.
    "wait for another run": (r"(stderr: )?waiting: process \d+ is measuring on this.*\n", ""),
    "digest of an output": (
        r"((?:samples|summary|metrics|tensorboard|page) .*?sha256:)[0-9a-f]{12}",
        r"\1DIGEST",
    ),
}
MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d(?:\.\d+)?Z?)?")


class Terminal(io.StringIO):
    """Standard output that says it is a terminal."""

    def isatty(self):
        return True


@dataclasses.dataclass
class Outcome:
    """How a command ended and what it said."""

    command: str
    code: int
    out: str
    err: str

    def __str__(self):
        said = "".join(f"{line.rstrip()}\n" for line in self.out.splitlines())
        said += "".join(f"stderr: {line}".rstrip() + "\n" for line in self.err.splitlines())
        return f"$ {self.command}\n{said}exit code {self.code}\n"


def transcript(*said):
    """Returns all that several commands said."""
    return "\n".join(map(str, said))


class Shell:
    """Runs commands in one folder; what they say has no colours and no name of that folder."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self._monkeypatch = monkeypatch
        # On a terminal the path is broken into lines, always at the same place.
        letters = (r"\s+" if letter == " " else re.escape(letter) for letter in str(folder))
        self._path = re.compile(r"\n?".join(letters))

    def __call__(self, *arguments, width=100, terminal=False, program="orbax-bench"):
        arguments = [str(argument) for argument in arguments]
        out, err = Terminal() if terminal else io.StringIO(), io.StringIO()
        with self._monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(sys, "argv", [program, *arguments])
            # Or the usage would name the module that Python was started with.
            patch.setattr(sys.modules["__main__"], "__package__", "", raising=False)
            code = 0
            try:
                if program == "orbax-bench":
                    command_line.main()
                else:
                    from orbax_bench_core.run_benchmarks import main

                    main()
            except SystemExit as end:
                code = 0 if end.code is None else end.code
        shown = shlex.join([program, *arguments])
        return Outcome(
            self.clean(shown), code, self.clean(out.getvalue()), self.clean(err.getvalue())
        )

    def clean(self, text):
        """Returns text without colours, with placeholders for what differs from day to day."""
        text = self._path.sub("FOLDER", screen(text) if "\x1b" in text else text)
        for pattern, placeholder in MASKS.values():
            text = re.sub(pattern, placeholder, text)
        return MOMENT.sub(_not_now, text)

    def views(self, *arguments):
        """Returns what a command shows on a narrow and on a wide terminal, and in a log."""
        parts = [
            f"## {width} columns\n{self(*arguments, width=width, terminal=True)}"
            for width in (80, 160)
        ]
        return "\n".join([*parts, f"## no terminal\n{self(*arguments)}"])

    def page(self, path):
        """Returns the text of an HTML page, and how many figures it has."""
        return self.clean(page_text((self.folder / path).read_text(encoding="utf-8")))

    def read(self, path):
        return self.clean((self.folder / path).read_text(encoding="utf-8"))

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return name


@pytest.fixture
def tmp_path(tmp_path_factory, monkeypatch):
    """A folder whose path has a space and a fixed length, and that need not survive a crash."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    folder = tmp_path_factory.mktemp("golden")
    missing = PATH_LENGTH - len(str(folder)) - len("//a folder")
    assert missing > 0, f"{folder} is too long for golden tests; set TMPDIR to a shorter path"
    folder = folder / ("x" * missing) / "a folder"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Commands in an empty folder, on a machine that nobody has set up."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "ORBAX_BENCH_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "50")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ORBAX_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(getpass, "getuser", lambda: "me")
    monkeypatch.setattr(socket, "gethostname", lambda: "pc")
    monkeypatch.setattr(uuid, "uuid4", ids())
    monkeypatch.setattr(WorkerPool, "group", no_worker)
    return Shell(tmp_path, monkeypatch)


def _not_now(match):
    """Returns a date and time, with a placeholder for those of today."""
    day = datetime.datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
    age = datetime.datetime.now(datetime.UTC) - day
    if not datetime.timedelta(0) <= age < datetime.timedelta(hours=1):
        return match[0]
    return "YYYY-MM-DD hh:mm" + (":ss" if match[3] else "")


def ids():
    """Returns a `uuid4` whose ids are known by their first digits."""
    count = itertools.count(1)

    def uuid4():
        number = next(count)
        return uuid.UUID(int=((0xFACADE00 + number % 256) << 96) + number)

    return uuid4


def no_worker(*_):
    raise AssertionError("a golden test of text started a worker")


def screen(text):
    """Returns what stays on a terminal after lines were shown, erased and shown again."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\n|\r)", text):
        control = CONTROL.fullmatch(part)
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == "\r":
            pass  # what follows erases the line
        elif control is None:
            lines[row] += part
        elif control[2] == "A":
            row -= int(control[1] or 1)
        elif control[2] == "K":
            lines[row] = ""
        else:
            assert control[2] in "mhl", f"an unknown control sequence: {part!r}"
    return "\n".join(lines)


_INLINE = {"a", "abbr", "b", "code", "em", "i", "small", "span", "strong", "tspan"}
_CELLS = {"td", "th", "text", "title"}


class _Text(html.parser.HTMLParser):
    """Collects the text of a page: a line per paragraph, row of a table, or figure."""

    def __init__(self):
        super().__init__()
        self.lines, self.figures, self.references = [], 0, []
        self._line, self._hidden, self._figure = "", 0, False

    def handle_starttag(self, tag, attrs):
        self._figure = self._figure or tag == "svg"
        self.figures += tag in ("svg", "img")
        self._hidden += tag in ("style", "script")
        self.references += [
            f"{name}={value}"
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "action") and not (value or "").startswith("#")
        ]
        self._separate(tag)

    def handle_endtag(self, tag):
        self._separate(tag)
        self._hidden -= tag in ("style", "script")
        self._figure = self._figure and tag != "svg"
        if tag == "svg":
            self._flush()

    def handle_data(self, data):
        if not self._hidden:
            self._line += data

    def _separate(self, tag):
        if tag in _CELLS:
            self._line += " | "
        elif tag not in _INLINE and not self._figure:
            self._flush()

    def _flush(self):
        cells = (" ".join(cell.split()) for cell in self._line.split(" | "))
        if any(line := [cell for cell in cells if cell]):
            self.lines.append(" | ".join(line))
        self._line = ""


def page_text(page):
    """Returns the text of an HTML page, below the number of its figures and what it loads."""
    found = _Text()
    found.feed(page)
    loaded = found.references + re.findall(r"url\((?!['\"]?#)[^)]*\)|@import[^;]*", page)
    head = [f"figures: {found.figures}", f"other files and addresses: {loaded or 'none'}", ""]
    return "\n".join([*head, *found.lines]) + "\n"


def limits_of(path):
    """What a made-up machine and its storage can do."""
    probes = {
        name: {"name": name, "num_bytes": GIB, "seconds": (0.1 * n, 0.1 * n, 0.11 * n)}
        for n, name in enumerate(limits.PROBES, 1)
    }
    for name in ("device_to_host", "host_to_device"):
        del probes[name]["seconds"]
        probes[name]["reason"] = "CPU devices have no memory apart"
    return made_up(
        {},
        str(path),
        requested_bytes=2 * GIB,
        capped_by="only 4 GiB of memory are free",
        taken_at=NOON,
        probes=list(probes.values()),
    )


@pytest.fixture
def interrupted(monkeypatch):
    """Measuring is interrupted at once."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerPool, "group", stop)


@pytest.fixture
def eventful(make_run, make_record, make_point):
    """A run in which everything occurs that a report must show."""
    good = make_point(options={"a": 1}, label="a=1")
    nasty = make_point(options={"a": 2}, label=NASTY)
    bad = make_point(options={"a": 3}, label="a=3")
    unfit = make_point(options={"a": 4}, label="a=4")
    training = make_point(options={"a": 5}, label="a=5")
    hosts = make_point(options={"a": 6}, label="a=6", processes=2)
    draw = random.Random(1)
    records = [
        make_record(
            good,
            repeat,
            times={
                "save_blocking": 0.1 * draw.uniform(1, 1.1),
                "save": 2.5 * draw.uniform(1, 1.4),
                "load": 1.25 * draw.uniform(1, 1.1),
            },
            sizes={"save": GIB, "load": GIB},
            state=State(num_bytes=GIB, digest={}),
        )
        for repeat in range(4)
    ]
    records += [make_record(nasty, repeat, times={"save": 1.5 + repeat}) for repeat in range(2)]
    error = ErrorInfo(type="ValueError", message="a|b <b>bold</b> [red]\nsecond")
    records += [make_record(bad, repeat, status="failed", error=error) for repeat in range(2)]
    error = ErrorInfo(type="MeshDoesNotFit", message="needs 8 devices [here]")
    records += [make_record(unfit, status="skipped", error=error)]
    costs = ((LOST, 0.75), (LOST_STEPS, 3.0), (BLOCKED, 0.25))
    cost = tuple(Sample("save", 0, metric.name, value, metric.unit) for metric, value in costs)
    record = make_record(training, times={"save": 2.0})
    records += [record.model_copy(update={"samples": (*record.samples, *cost)})]
    for repeat in range(3):
        for host in range(2):
            seconds = 1.0 + 0.5 * host + 0.01 * repeat
            record = make_record(hosts, repeat, times={"save": seconds}, host=host, num_hosts=2)
            stage = Sample("save", 0, "2_save_breakdown/blocking_d2h_s", 0.25 * host, "s")
            records += [record.model_copy(update={"samples": (*record.samples, stage)})]
    run = make_run(records, num_repeats=2)
    info = run.read_info()
    skip = SkippedPoint(point=make_point(label="too big [x]"), reason="needs [8] devices")
    expansion = info.expansion.model_copy(update={"skipped": (skip,), "notes": ("mind [this]",)})
    run.write_info(info.model_copy(update={"expansion": expansion}))
    limits.write(run, limits_of(run.root))
    return run


@pytest.fixture
def begin(make_record):
    """Begins the run of a suite file as the command line does, with a fixed id and date."""

    def begin_(suite, folder, overrides=()):
        loaded = load_suite(str(suite), overrides)
        run = RunDirectory(str(folder))
        info = run.start(loaded, expand(loaded))
        run.write_info(info.model_copy(update={"run_id": "run", "created_at": NOON}))
        return run

    return begin_


@pytest.fixture
def fill(make_record):
    """Writes the records of a run without arms; a point whose name has `failing` in it fails."""

    def fill_(run, *, failing="nothing fails", status="failed", repeats=None):
        info = run.read_info()
        for number, point in enumerate(info.expansion.points):
            draw = random.Random(number)
            for repeat in range(repeats or info.num_repeats):
                fields = {"suite": info.suite_name, "state": State(num_bytes=GIB, digest={})}
                if failing in point.name:
                    error = ErrorInfo(type="ValueError", message="no [luck]")
                    fields = {**fields, "status": status, "error": error}
                else:
                    fields["times"] = {name: draw.uniform(1, 1.2) for name in ("save", "load")}
                    fields["sizes"] = {"save": GIB, "load": GIB}
                run.write_record(make_record(point, repeat, **fields))
        return run

    return fill_


@pytest.fixture
def fill_blocks(make_record):
    """Writes blocks of every pair of a run: `ratios` of save and load, and the noise of both."""

    def fill_(run, *, ratios=(1.0, 1.0), sigma=0.02, blocks=5, failing=None):
        info = run.read_info()
        for number, point in enumerate(info.expansion.points):
            draw = random.Random(number)
            for block in range(blocks):
                for slot, arm in enumerate(arrangement(info.run_id, point.id, block)):
                    repeat = block * BLOCK_SIZE + slot
                    fields = {"arm": arm, "block": block, "suite": info.suite_name}
                    fields["started_at"] = NOON + datetime.timedelta(seconds=3 * repeat)
                    fields["state"] = State(num_bytes=2**26, digest={})
                    if arm == failing and block == 1:
                        error = ErrorInfo(type="ValueError", message="no [luck]")
                        run.write_record(
                            make_record(point, repeat, status="failed", error=error, **fields)
                        )
                        continue
                    times = {
                        name: (ratio if arm == "candidate" else 1) * math.exp(draw.gauss(0, sigma))
                        for name, ratio in zip(("save", "load"), ratios, strict=True)
                    }
                    run.write_record(make_record(point, repeat, times=times, **fields))
        return run

    return fill_
