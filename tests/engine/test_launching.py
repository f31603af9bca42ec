"""A point that is measured on hosts which a launcher starts."""

import contextlib
import json

import pytest

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.engine import PointFailed, plan_sweep
from orbax_bench_core.engine.point import launch_batch
from orbax_bench_core.errors import UserError
from orbax_bench_core.experiments import RunSettings
from orbax_bench_core.launchers import PLACES, Place, job_name
from orbax_bench_core.records import RunDirectory
from tests.support.command_lines import parse
from tests.support.processes import ROOT
from tests.support.scripted import NAME

pytestmark = pytest.mark.slow

DIGEST = "a/b@sha256:" + "0" * 64


class NoRecord(Exception):
    """Hosts ended well, and left no record."""


class ToldSettings(ConfigModel):
    queue: str = ""
    node_selector: dict[str, str] = {}


class StartsNothing:
    """A place that starts nothing, and keeps what it was asked to start."""

    def __init__(self):
        self.launches = []
        self.does = lambda: 0

    def launcher(self, launch, settings):
        self.launches.append((launch, settings))
        return self

    def start(self):
        return self.does()


@pytest.fixture
def told(monkeypatch):
    place = StartsNothing()
    known = Place(ToldSettings, place.launcher)
    monkeypatch.setitem(PLACES, "told", known)
    monkeypatch.setenv("ORBAX_BENCH_IMAGE", DIGEST)
    return place


@pytest.fixture
def point(tmp_path, monkeypatch):
    """Plans a suite of one step; returns its points and the run directory."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(processes=1, options=None):
        suite = {
            "suite_name": "scripted",
            "num_repeats": 1,
            "execution": {"warmups": 0},
            "benchmarks": [{"generator": NAME, "options": options or {"save_s": 0.02}}],
        }
        out = str(tmp_path / "out")
        return plan_sweep(json.dumps(suite), out, processes=processes).value[0], out

    return make


def launched(point, out, **hosts):
    """Launches a point on hosts that leave no record."""
    hosts = {"launcher": "told", **hosts}
    with contextlib.suppress(NoRecord):
        try:
            launch_batch(point.split(), out, settings=RunSettings(), **hosts)
        except PointFailed as failure:
            raise (NoRecord if "no record" in str(failure) else PointFailed)(failure) from None


def test_hosts_run_the_step_of_that_point_in_the_image_of_this_one(told, point):
    one, out = point(processes=4)
    launched(one, out, launcher_settings=["queue=q", 'node_selector={"pool": "b"}'])
    [(launch, settings)] = told.launches
    info = RunDirectory(out).read_info()
    [entry] = info.expansion.points
    assert launch.command == ("orbax-bench", "step", "run-sweep-point", entry.id, "-o", out)
    assert launch.name == job_name(info.run_id, entry.id)
    assert (launch.hosts, launch.image, launch.suite) == (4, DIGEST, "")
    assert settings == ToldSettings(queue="q", node_selector={"pool": "b"})


def test_what_is_asked_of_the_step_is_asked_of_the_hosts(told, point):
    one, out = point()
    with pytest.raises(PointFailed, match="its hosts exited with 0 but left no record"):
        launch_batch(
            [one],
            out,
            launcher="told",
            settings=RunSettings(keep_data=True, hlo_dump=True),
            limits=False,
            strict=True,
            lock=False,
        )
    [(launch, _)] = told.launches
    flags = "--keep-data --enable-hlo-dump --no-limits --strict --no-lock"
    assert launch.command[6:] == tuple(flags.split())
    assert parse(launch.command[1:]) == "orbax-bench step run-sweep-point"


def test_hosts_that_a_single_process_drives_are_not_asked_for_their_devices(
    told, point, monkeypatch
):
    monkeypatch.setitem(PLACES, "told", PLACES["told"]._replace(one_process=lambda _: True))
    one, out = point()
    launched(one, out, tpu="v5e:4x8")
    [(launch, _)] = told.launches
    assert "--expect" not in launch.command


def test_a_point_that_does_not_use_all_hosts_of_a_slice_is_refused_with_the_numbers(told, point):
    one, out = point(processes=3)
    with pytest.raises(UserError, match=r"8 hosts of 4 chips, .*processes 3 does not use"):
        launched(one, out, tpu="v5e:4x8")
    assert told.launches == []


def test_hosts_that_do_not_come_to_their_end_fail_the_step(told, point):
    told.does = lambda: 75
    with pytest.raises(PointFailed, match="its hosts ended with exit code 75"):
        launched(*point())


def test_a_launcher_that_there_is_not_is_refused(point):
    with pytest.raises(UserError, match="did you mean 'vertex'"):
        launched(*point(), launcher="vertx")


def test_hosts_elsewhere_cannot_reach_a_folder_of_this_machine(point):
    settings = ["project=p", "location=l", "machine_type=n2-standard-8"]
    with pytest.raises(UserError, match=r"the run directory .* is a folder of this machine"):
        launched(*point(), launcher="vertex", launcher_settings=settings)
