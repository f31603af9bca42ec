"""Running points in this process with fake workers, and suites as a user does with real ones."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orbax_bench_core.config import CheckpointConfig, MeshConfig, parse_suite
from orbax_bench_core.execute import LocalHost, RunSettings, Session, run_points
from orbax_bench_core.records import Record, RunDirectory
from orbax_bench_core.sweep import Expansion, SweepPoint
from orbax_bench_core.worker import Ready
from tests.golden.support import Outcome, orbax_bench
from tests.support.fake_worker import MODULE as FAKE_WORKER
from tests.support.processes import REAL_CLI, ROOT, plain_environment, start_cli
from tests.support.scripted import NAME, ScriptedOptions

HERE = Path(__file__).parent
CHECKPOINT = CheckpointConfig.model_validate({"spec": {"w": {"dtype": "float32", "shape": [8]}}})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this process ask more often whether it may join, and whether the machine is free."""
    monkeypatch.setattr("orbax_bench_core.execute.hosts.agent._PAUSE_S", 0.03)
    monkeypatch.setattr("orbax_bench_core.execute.lock._POLL_S", 0.01)


class Orchestrated:
    """A run directory, and points that fake workers run as their options say."""

    def __init__(self, folder: Path, points: Sequence[SweepPoint]) -> None:
        self.points = points
        self.directory = folder / "out"
        self.watched = []

    def run(self, *, repeats: int = 1, **given: object) -> None:
        """Runs what has no finished record yet.

        Args:
            repeats: Measured repeats of each point.
            given: Fields of `RunSettings`, and `meanwhile`; all others belong to `execution`.
        """
        meanwhile = given.pop("meanwhile", None)
        names = ("devices", "take_turns", "host", "patience", "drill")
        fields = {name: given.pop(name) for name in names if name in given}
        execution = {"retries": 0, "warmups": 0, "timeout_s": 60, **given}
        text = {
            "suite_name": "scripted",
            "num_repeats": repeats,
            "execution": execution,
            "benchmarks": [{"generator": "save_restore", "options": {}}],
        }
        loaded = parse_suite(json.dumps(text))
        run = RunDirectory(str(self.directory))
        run_points(
            Session(
                directory=run,
                info=run.start(loaded, Expansion(points=tuple(self.points))),
                suite=loaded,
                entries=tuple(self.points),
                settings=RunSettings(**{"host": LocalHost(module=FAKE_WORKER), **fields}),
                watch=self.watched.append,
            ),
            meanwhile,
        )

    def record(self, act: str, repeat: int = 0, host: int = 0) -> Record:
        """Returns one record of the point with this act."""
        return self.repeat(act, repeat)[host]

    def repeat(self, act: str, repeat: int = 0) -> dict[int, Record]:
        """Returns the records of one repeat of the point with this act, by host."""
        (point,) = (one for one in self.points if one.options["act"] == act)
        return RunDirectory(str(self.directory)).read_repeat(point, repeat).records

    def processes(self, act: str, repeats: int) -> set[str]:
        """Returns the process ids of the workers that made the repeats of a point."""
        records = [one for i in range(repeats) for one in self.repeat(act, i).values()]
        assert records
        return {pid for record in records for pid in record.notes["process"]}

    def record_bytes(self) -> dict[str, bytes]:
        return record_bytes(self.directory)


@pytest.fixture
def orchestrate(tmp_path, monkeypatch):
    """Makes points with the given acts; their workers are fakes."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(*acts: str, processes: int = 1, devices: int | None = None, **script: object):
        mesh = {"mesh_axes": ("x",), "ici_parallelism": {"x": devices}}
        return Orchestrated(
            tmp_path,
            [
                SweepPoint(
                    benchmark=NAME,
                    options=vars(ScriptedOptions(act=act, **script)),
                    checkpoint=CHECKPOINT,
                    mesh=None if devices is None else MeshConfig.model_validate(mesh),
                    processes=processes,
                    label=act,
                )
                for act in acts
            ],
        )

    return make


class SuiteRun:
    """One output directory and the command that fills it."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.suite_file = folder / "suite.yaml"
        self.suite_file.write_text(suite)
        self.directory = folder / "out"

    def start(
        self, *flags: str, cli: str = REAL_CLI, command: str = "run", **how: Any
    ) -> subprocess.Popen[str]:
        return start_cli(
            *(command, self.suite_file, "--output-directory", self.directory),
            *("--no-lock", *(["--no-limits"] if command == "run" else []), *flags),
            cli=cli,
            environment=plain_environment(PYTHONPATH=str(HERE), COLUMNS="200"),
            **how,
        )

    def run(
        self, *flags: str, inside: Sequence[str] = (), bench: Callable[..., Outcome] = orbax_bench
    ) -> tuple[int, str]:
        """Runs the suite in this process; in one of its own where words come before the command."""
        if inside:
            process = self.start(*flags, inside=inside)
            output, _ = process.communicate(timeout=120)
            return process.returncode, output
        environment = plain_environment(PYTHONPATH=str(HERE), COLUMNS="200")
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ.keys() - environment.keys():
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            places = (self.suite_file, "-o", self.directory)
            done = bench("run", *places, "--no-lock", "--no-limits", *flags)
        return done.code, done.out + done.err

    def host_files(self, name: str) -> dict[Path, dict]:
        """Every record of a measured repeat in files of a name, by its path."""
        paths = sorted(self.directory.glob(f"records/*/repeat_*/{name}.json"))
        return {path: json.loads(path.read_text()) for path in paths}

    def records(self) -> dict[str, dict]:
        """Every record of a measured repeat, by `<act or point id>/repeat_<r>`."""
        return {
            f"{one['point']['options'].get('act', one['point_id'])}/{path.parent.name}": one
            for path, one in self.host_files("host_0").items()
        }

    def host_records(self, repeat: int, act: str) -> dict[int, dict]:
        """Records of one repeat of the point with this `act`, by host."""
        return {
            one["host"]: one
            for path, one in self.host_files("host_*").items()
            if (path.parent.name, one["point"]["options"]["act"]) == (f"repeat_{repeat}", act)
        }

    def statuses(self) -> list[str]:
        """Status of every measured repeat, sorted."""
        return sorted(one["status"] for one in self.host_files("host_0").values())

    def record_bytes(self) -> dict[str, bytes]:
        return record_bytes(self.directory)


def ready(platform="cpu", kind="cpu", count=1, **more: object) -> Ready:
    """Returns what a worker says that has these devices."""
    given = {
        "fixed": True,
        "processes": 1,
        "host_memory": "reused",
        "x64": True,
        "interpreter": "",
        "interpreter_asked": "",
    }
    devices = {"platform": platform, "kind": kind, "count": count}
    return Ready(
        platform=platform,
        device_count=count,
        provenance={"devices": devices},
        **{**given, **more},
    )


def record_bytes(directory: Path) -> dict[str, bytes]:
    """Returns every record of a run directory, by its path."""
    root = directory / "records"
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("host_*.json")}


@pytest.fixture
def suite_run(tmp_path):
    return lambda suite: SuiteRun(tmp_path, suite)
