"""Basis of every test: eight simulated CPU devices, set before JAX can be imported."""

import os
import re
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
# No test asks how fast a compiled function is; most functions run once.
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
    " --xla_llvm_disable_expensive_passes=true"
)
os.environ["JAX_ENABLE_X64"] = "true"
# What a test starts has the classes of tests, and nothing from the current directory.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
)
# Nothing of one test is kept for another.
os.environ["ORBAX_BENCH_LIMITS"] = "none"

import datetime
import functools
import gc
import inspect
import itertools
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from orbax_bench_core.config import CheckpointConfig, parse_suite
from orbax_bench_core.files import atomic as files
from orbax_bench_core.measure import BYTES, CPU, TIME, Sample
from orbax_bench_core.records import Record, RunDirectory
from orbax_bench_core.sweep import Expansion, Pair, SweepPoint
from tests.support.targets import refuse

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
PROVENANCE = {
    "versions": {"jax": "0.10.2"},
    "python": "3.11.7",
    "git": {"commit": "c0ffee", "dirty": False},
    "code": {
        side: {"commit": "c0ffee", "dirty": False, "branch": "main"}
        for side in ("generator", "suite")
    },
    "host": {"name": "h", "kernel": "Linux", "cpu": "EPYC", "cpu_count": 2, "memory_bytes": 2**34},
    "devices": {"count": 8, "kind": "cpu", "platform": "cpu"},
}


# Millions of objects live as long as the process: imports, tests, compiled code. To look through
# them again and again took a seventh of the time of all tests.
gc.set_threshold(100_000, 50, 1000)


_MODULE_MARK = re.compile(r"^pytestmark = pytest\.mark\.(\w+)", re.MULTILINE)
_MARK = re.compile(r"\bmark\.(slow|nightly|extended)\b")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves a file unread in which no test can have the marks that are asked for.

    What a file imports, such as the client of a cloud, takes seconds in every process.
    """
    if not (config.option.markexpr and collection_path.name.startswith("test_")):
        return None
    text = collection_path.read_text()
    certain, possible = set(_MODULE_MARK.findall(text)), set(_MARK.findall(text))
    selection = Expression.compile(config.option.markexpr)
    marks = (
        certain.union(more)
        for count in range(len(possible) + 1)
        for more in itertools.combinations(possible, count)
    )
    may = any(selection.evaluate(functools.partial(_is_in, some)) for some in marks)
    return None if may else True


def _is_in(marks: set[str], name: str, **_: object) -> bool:
    return name in marks


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freezes what was imported and collected, and has JAX keep what it compiles."""
    gc.collect()
    gc.freeze()
    _keep_what_jax_compiles(session)


def _keep_what_jax_compiles(session: pytest.Session) -> None:
    """Keeps what JAX compiles, in this process only: a child that measures must not find it.

    Each process has a folder of its own, since JAX does not write its files in one step.
    """
    if "jax" not in sys.modules or not hasattr(session.config, "cache"):
        return
    import jax

    folder = session.config.cache.mkdir("jax") / os.environ.get("PYTEST_XDIST_WORKER", "main")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


class _Unsynced:
    """The module `os`, whatever a test puts into it, but for waiting for a disk."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, number: int) -> None:
        """Waits for nothing."""


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Has records survive no power cut: waiting for disks is most of what writing them takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "os", _Unsynced())
        yield


@pytest.fixture(scope="session", autouse=True)
def shallow_stacks() -> Iterator[None]:
    """Spares the lines of source of each frame, which KFP reads for each setting of each step.

    It asks for the name of its caller alone, and most of a compilation goes into that.
    """

    def stack(context: int = 1) -> list[inspect.FrameInfo]:
        frames = (frame for frame, _ in traceback.walk_stack(sys._getframe(1)))
        return [
            inspect.FrameInfo(
                frame, frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None, None
            )
            for frame in frames
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspect, "stack", stack)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_yaml() -> Iterator[None]:
    """Has KFP write its packages by libyaml, whose text is the same, in a third of the time."""
    import yaml

    def dump_all(documents, stream=None, Dumper=yaml.CDumper, **options):
        return real(documents, stream, Dumper, **options)

    real = yaml.dump_all
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "dump_all", dump_all)
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_examples() -> Iterator[None]:
    """Has Hypothesis draw from strategies alone.

    It would parse every module of ours that is loaded, for constants to draw as well.
    """
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    with pytest.MonkeyPatch.context() as patch:
        if providers is not None:
            none = providers._local_constants
            patch.setattr(providers, "_get_local_constants", lambda: none)
        yield


@pytest.fixture(scope="session", autouse=True)
def parsers() -> Iterator[None]:
    """Keeps the parsers of commands, which are made again on each call from all their types.

    A parser keeps the flags of its help from its first use, and whoever used it without the group
    that it belongs to would leave it without `-h`.
    """
    import typer.main
    import typer.testing

    make = functools.cache(typer.main.get_command)

    def kept(app):
        command = make(app)
        for each in _with_all_below(command):
            each._help_option = None
        return command

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", kept)
        patch.setattr(typer.testing, "_get_command", kept)
        yield


def _with_all_below(command):
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _with_all_below(each)


@pytest.fixture(scope="session")
def once():
    """Makes a value that no test changes on the first call by its name, and returns it again."""
    made = {}

    def remember(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    return remember


_MARKS: set[str] = set()
"""Markers of the test under way."""


def pytest_configure() -> None:
    """Watches what tests start.

    An audit hook would be told of every file that is opened and every module that is imported too,
    which took 2 s of the unit tests.
    """
    start = subprocess.Popen.__init__
    signature = inspect.signature(start)

    @functools.wraps(start)
    def watched(*arguments: Any, **keywords: Any) -> None:
        given = signature.bind(*arguments, **keywords).arguments
        words = given["args"]
        alone = isinstance(words, str | bytes | os.PathLike)
        executable = given.get("executable") or (words if alone else next(iter(words), ""))
        refuse(executable, words, given.get("env"), _MARKS)
        start(*arguments, **keywords)

    subprocess.Popen.__init__ = watched


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _MARKS.clear()
    _MARKS.update(mark.name for mark in item.iter_markers())
    return (yield)


@pytest.fixture(scope="session")
def make_point():
    """Builds a sweep point of the built-in benchmark, or a pair when it is given a candidate."""

    def make(candidate=None, **fields):
        defaults = {
            "benchmark": "save_restore",
            "options": {"use_ocdbt": True},
            "checkpoint": CheckpointConfig(),
            "mesh": None,
            "label": "use_ocdbt=true",
        }
        point = SweepPoint(**{**defaults, **fields})
        return point if candidate is None else Pair(baseline=point, candidate=candidate)

    return make


@pytest.fixture(scope="session")
def make_record(make_point):
    """Builds the record of one repeat: `times` and `cpu` in seconds, `sizes` in bytes."""

    def make(point=None, repeat=0, *, times=None, cpu=None, sizes=None, **fields):
        point = point or make_point()
        samples = [Sample(name, 0, TIME, value, "s") for name, value in (times or {}).items()]
        samples += [Sample(name, 0, CPU, value, "s") for name, value in (cpu or {}).items()]
        samples += [Sample(name, 0, BYTES, value, "B") for name, value in (sizes or {}).items()]
        defaults = {
            "run_id": "run",
            "suite": "a suite",
            "point_id": point.id,
            "point_name": point.name,
            "point": point,
            "repeat": repeat,
            "warmup": False,
            "status": "passed",
            "started_at": NOON,
            "duration_s": 1.0,
            "samples": tuple(samples),
            "provenance": PROVENANCE,
        }
        return Record(**{**defaults, **fields})

    return make


@pytest.fixture
def make_run(tmp_path):
    """Writes a run directory that holds `records`, with the points that occur in them."""

    def make(records, *, points=None, num_repeats=1, folder="run"):
        points = points or {record.point_id: record.point for record in records}.values()
        loaded = parse_suite(
            f"suite_name: a suite\nnum_repeats: {num_repeats}\n"
            "benchmarks:\n- {generator: save_restore, options: {}}\n"
            # A PASS of few operations needs to exclude no share of stalls and failures.
            "gate: {max_stalls: null, max_failures: null}\n"
        )
        run = RunDirectory(str(tmp_path / folder))
        info = run.start(loaded, Expansion(points=tuple(points)))
        # A fixed id and date, so that two runs of the same records differ in nothing.
        run.write_info(info.model_copy(update={"run_id": "run", "created_at": NOON}))
        for record in records:
            run.write_record(record)
        return run

    return make


STORAGE_SERVER = """
import sys, time
from gcp_storage_emulator.server import create_server
server = create_server(
    "127.0.0.1", 0, in_memory=False, data_dir=sys.argv[1], default_bucket="bench-bucket"
)
server.start()
print(server._api._httpd.server_address[1], flush=True)
time.sleep(3600)
"""


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Environment of processes that take an emulator for Cloud Storage; bucket `bench-bucket`."""
    pytest.importorskip("gcp_storage_emulator")
    command = [sys.executable, "-c", STORAGE_SERVER, str(tmp_path / "storage")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{int(server.stdout.readline())}"
        yield {
            **os.environ,
            "STORAGE_EMULATOR_HOST": address,
            "TENSORSTORE_GCS_HTTP_URL": address,
            # Spares a request that only the real service answers.
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }
        server.kill()
