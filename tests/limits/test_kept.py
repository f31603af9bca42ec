"""Limits that are kept between runs: taken while a short check agrees, and said to be kept."""

import datetime
import itertools

import pytest

from orbax_bench_core.execute import LocalHost
from orbax_bench_core.limits import process
from orbax_bench_core.limits.model import read
from orbax_bench_core.limits.process import Check, LimitsCache, ensure_limits
from orbax_bench_core.records import State
from tests.support.limits import made_up

NOW = datetime.datetime.now(datetime.UTC)


class Machine:
    """A machine whose limits and check are made up, and that counts how often it measures."""

    def __init__(self, make_run, make_record):
        record = make_record(state=State(num_bytes=1 << 20, digest={}))
        self._make = lambda: make_run([record], folder=f"run{next(self._numbers)}")
        self._numbers = itertools.count()
        self.measured = 0
        self.taken_at = NOW
        self.check = Check(write_s=0.01, copy_s=0.001)
        self.said = []

    def take(self, *_, **__):
        self.measured += 1
        yield 0, made_up({"write_fsync": 1.0}, taken_at=self.taken_at)

    def run(self, **given):
        run = self._make()
        self.said.clear()
        ensure_limits(run, self.said.append, LocalHost(), **given)
        return read(run)


@pytest.fixture
def machine(make_run, make_record, monkeypatch, tmp_path):
    found = Machine(make_run, make_record)
    monkeypatch.setenv(process.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(process, "_take", found.take)
    monkeypatch.setattr(LimitsCache, "_check", lambda *_: found.check)
    return found


def test_the_second_run_on_a_machine_and_storage_measures_no_limits(machine):
    first, second = machine.run(), machine.run()
    assert machine.measured == 1
    assert first.confirmed is None
    assert second.probes == first.probes
    assert second.taken_at == first.taken_at
    assert second.confirmed.ratio == 1.0
    (said,) = machine.said
    assert said.startswith("the limits of this machine and storage were measured at ")
    assert f"{NOW:%Y-%m-%d %H:%M} UTC, and a short check agrees" in said


def test_a_report_says_since_when_limits_are_kept(machine):
    machine.run()
    assert machine.run().age_sentence.startswith(
        f"Limits were measured at {NOW:%Y-%m-%d %H:%M} UTC and kept; a short check "
    )


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_check_that_differs_has_them_measured_anew(machine, factor):
    machine.run()
    machine.check = Check(write_s=0.01 * factor, copy_s=0.001)
    assert machine.run().confirmed is None
    assert machine.measured == 2
    assert machine.said[0].startswith("a short check differs by a factor of 2 from that of ")
    assert machine.run().confirmed is not None


def test_who_asks_for_new_limits_gets_them(machine):
    machine.run()
    assert machine.run(again=True).confirmed is None
    assert machine.measured == 2


def test_old_limits_are_measured_anew(machine):
    machine.taken_at = NOW - process.MOST_AGE - datetime.timedelta(hours=1)
    machine.run()
    assert machine.run().confirmed is None
    assert machine.said[0].endswith("UTC are older than 7 days")


@pytest.mark.parametrize("part", ["versions", "host", "environment"])
def test_those_of_another_machine_or_release_are_not_taken(machine, monkeypatch, part):
    machine.run()
    other = {**process.host_provenance(), part: {"another": "one"}}
    monkeypatch.setattr(process, "host_provenance", lambda: other)
    assert machine.run().confirmed is None


@pytest.mark.slow  # it waits for a disk
def test_a_check_leaves_nothing_and_finds_times(tmp_path):
    cache = LimitsCache(tmp_path, str(tmp_path))
    found = cache._check()
    assert found.apart(found) == 1.0
    assert cache._check(found).apart(found) >= 1.0
    assert list(tmp_path.iterdir()) == []


def test_kept_limits_that_are_damaged_are_said_and_measured_anew(machine, tmp_path):
    machine.run()
    (file,) = (tmp_path / "kept").iterdir()
    file.write_text("{")
    assert machine.run() is not None
    assert machine.measured == 2
    assert machine.said[0] == f"{file} with kept limits is damaged, or of another release"
