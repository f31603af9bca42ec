"""A step whose store is not well for a moment goes on by itself, and tries nothing else again."""

import errno
import functools
import inspect
import json
import os
import shutil
import socket
import types

import pytest

from orbax_bench_core.engine import (
    ErrorsAsMessages,
    NotPassed,
    PointFailed,
    aggregate,
    measurement,
    plan_sweep,
    retrying,
    run_sweep_point,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import CannotRecord, LocalHost, RunSettings
from orbax_bench_core.leases import PACE
from tests.support.processes import ROOT
from tests.support.scripted import NAME

WAITS_S = retrying.WAITS_S
SUITE = """
suite_name: scripted
num_repeats: 2
execution: {{retries: 0, warmups: 0}}
benchmarks: [{{generator: {name}, options: {{act: {act}}}}}]
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Plans a point, and returns what measures it."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(retrying, "WAITS_S", (0.0, 0.1))
    # A lease whose store failed is left behind, and waited for.
    for name in ("beat_s", "stale_s", "poll_s"):
        monkeypatch.setattr(PACE, name, getattr(PACE, name) / 40)
    host = LocalHost(module="tests.support.fake_worker")
    monkeypatch.setattr(measurement, "RunSettings", functools.partial(RunSettings, host=host))
    place = str(tmp_path / "out")

    def plan(act="behave", **given):
        points = plan_sweep(SUITE.format(name=NAME, act=act), place).value
        how = {"measure_limits": False, "lock": False}
        return lambda *names: run_sweep_point(names or points, place, **how, **given)

    return plan


@pytest.fixture
def broken(monkeypatch):
    """Has a call of the system fail below a run directory from one time to another."""

    def fail(call, number, *, first=0, times=1):
        usual, asked = getattr(os, call), []

        def flaky(path, *more, **given):
            if "/out/" in str(path):
                asked.append(path)
                if first < len(asked) <= first + times:
                    raise OSError(number, os.strerror(number), path)
            return usual(path, *more, **given)

        monkeypatch.setattr(os, call, flaky)

    return fail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "first"), [("open", 0), ("open", 1), ("open", 2), ("link", 0), ("listdir", 2)]
)
def test_reads_leases_and_digests_that_fail_once_end_no_step(
    planned, broken, capfd, tmp_path, call, first
):
    measure = planned()
    broken(call, errno.EIO, first=first)
    assert measure().value == ["passed"]
    said = capfd.readouterr().out
    assert said.count("the step is tried again in 0 s") == 1
    assert os.strerror(errno.EIO) in said
    records = [json.loads(file.read_text()) for file in tmp_path.glob("out/records/**/host_0.json")]
    assert [(one["status"], one["attempts"]) for one in records] == [("passed", [])] * 2


@pytest.mark.slow
def test_a_store_that_stays_away_ends_the_step_after_each_wait(planned, broken, capfd):
    measure = planned()
    broken("open", errno.ESTALE, times=10**6)
    with pytest.raises((UserError, OSError), match=os.strerror(errno.ESTALE)):
        measure()
    assert capfd.readouterr().out.count("the step is tried again") == 2


@pytest.mark.slow
@pytest.mark.parametrize(("act", "tries"), [("unrecorded", 2), ("unwell", 2)])
def test_a_record_that_a_worker_cannot_write_is_tried_again(planned, capfd, act, tries):
    with pytest.raises(CannotRecord, match="cannot write the record"):
        planned(act)()
    assert capfd.readouterr().out.count("the step is tried again") == tries


@pytest.mark.slow
def test_what_was_given_or_found_is_not_tried_again(planned, broken, capfd, monkeypatch):
    with pytest.raises(PointFailed, match="raised on purpose"):
        planned("raise", strict=True)()
    measure = planned("raise")
    with pytest.raises(UserError, match="0" * 12):
        measure("0" * 12)
    broken("open", errno.EACCES)
    with pytest.raises((UserError, OSError), match=os.strerror(errno.EACCES)):
        measure()
    assert "the step is tried again" not in capfd.readouterr().out


@pytest.mark.slow
def test_a_store_that_was_full_is_tried_again_and_the_report_says_so(planned, broken, tmp_path):
    measure = planned()
    broken("open", errno.ENOSPC, first=2)
    assert measure().value == ["passed"]
    aggregate(str(tmp_path / "out"))
    said = (tmp_path / "out" / "report.md").read_text()
    assert "run-sweep-point was tried again once and went on, last at " in said
    assert os.strerror(errno.ENOSPC) in said


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_room_that_is_lacking_is_a_mistake_only_before_anything_was_tried(
    planned, broken, monkeypatch, capfd, first
):
    """A disk that has filled up: the step waits as long as for anything else, and exits with 1."""
    checkpoint = "checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}\n"
    monkeypatch.setitem(
        globals(), "SUITE", SUITE + checkpoint.replace("{", "{{").replace("}", "}}")
    )
    measure, waited = planned(), []
    monkeypatch.setattr(retrying, "WAITS_S", WAITS_S)
    monkeypatch.setattr(retrying, "time", types.SimpleNamespace(sleep=waited.append))
    monkeypatch.setenv("_KFP_RUNTIME", "true")
    usual, asked = shutil.disk_usage, []

    def disk_usage(folder):
        asked.append(folder)
        room = 2**30 if not first and len(asked) == 1 else 0
        return usual(folder)._replace(free=room)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    broken("link", errno.ENOSPC)
    with pytest.raises(SystemExit) as ended, ErrorsAsMessages():
        measure()
    said = capfd.readouterr().out
    assert "has 0 B free, and one checkpoint of this suite has 32 B of arrays" in said
    assert (ended.value.code, waited) == ((2, []) if first else (1, [10.0, 30.0, 90.0]))
    assert said.count("there may be room again") == len(waited)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), "there may be memory again"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), "well again"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "well again"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "there may be room again"),
        (ValueError("suite"), None),
        (PermissionError(errno.EACCES, "no"), None),
        (NotPassed("REGRESSION", 3), None),
    ],
)
def test_what_passes_is_tried_again_and_nothing_else(monkeypatch, capfd, error, why):
    monkeypatch.setattr(retrying, "WAITS_S", (0.0, 0.0))
    tries = []

    @retrying.tried_again
    def step():
        tries.append(1)
        if why is None or len(tries) < 3:
            raise error
        return "done"

    if why is None:
        with pytest.raises(type(error)):
            step()
        assert len(tries) == 1
    else:
        assert (step(), len(tries)) == ("done", 3)
        assert why in capfd.readouterr().out


def test_every_step_is_tried_again():
    from orbax_bench_core import engine

    steps = [name for name, found in vars(engine).items() if inspect.isfunction(found)]
    once = {name for name in steps if not hasattr(getattr(engine, name), "__wrapped__")}
    assert once == {"as_component", "batches", "run_batch", "run_folder"}
