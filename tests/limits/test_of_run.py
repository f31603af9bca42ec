"""The limits of a run: measured once, and no reason for a run to fail."""

import pytest

from orbax_bench_core.limits import process
from orbax_bench_core.limits.model import read
from orbax_bench_core.limits.process import ensure_limits
from orbax_bench_core.records import State


@pytest.fixture
def said():
    return []


@pytest.mark.slow
def test_the_limits_of_a_run_are_measured_once(make_run, make_record, said):
    run = make_run([make_record(state=State(num_bytes=1 << 20, digest={}))])
    ensure_limits(run, said.append)
    first = read(run)
    assert first is not None
    assert first.num_bytes == 1 << 20
    ensure_limits(run, said.append)
    assert read(run) == first
    assert len(said) == 1


def test_a_run_that_measured_nothing_has_no_limits(make_run, make_record, said):
    run = make_run([make_record()])
    ensure_limits(run, said.append)
    assert read(run) is None
    assert said == []


def test_limits_that_cannot_be_taken_are_said_and_no_more(make_run, make_record, said, monkeypatch):
    def full_disk(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(process, "take_limits", full_disk)
    run = make_run([make_record(state=State(num_bytes=1 << 20, digest={}))])
    ensure_limits(run, said.append)
    assert said[-1] == "no limits: No space left on device"
