"""A worker that outlives its orchestrator overwrites nothing, and measures beside nobody."""

import subprocess
import sys
import threading

import pytest

from orbax_bench_core.execute.lock import held_locks, measuring_lock
from tests.support.orphans import trial


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "attempt", [0, *(pytest.param(n, marks=pytest.mark.extended) for n in (1, 2))]
)
def test_a_frozen_worker_that_lives_on_overwrites_nothing(tmp_path, attempt):
    made = trial(tmp_path)
    assert made.code == 0, made.output
    assert made.survived
    assert made.final == 6
    assert made.overwritten == ()


@pytest.mark.slow
def test_a_frozen_worker_ends_with_its_orchestrator(tmp_path):
    made = trial(tmp_path, mortal=True)
    assert made.code == 0, made.output
    assert not made.survived
    assert made.overwritten == ()


@pytest.mark.nightly
@pytest.mark.parametrize("attempt", [0, pytest.param(1, marks=pytest.mark.extended)])
def test_the_real_worker_ends_with_its_orchestrator(tmp_path, attempt):
    made = trial(tmp_path, real=True)
    assert made.code == 0, made.output
    assert not made.survived
    assert made.overwritten == ()


@pytest.mark.slow
def test_nobody_measures_beside_an_orphan(tmp_path):
    lock_file = tmp_path / "lock"
    with measuring_lock(print, lock_file=lock_file):
        orphan = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=held_locks()
        )
    assert held_locks() == ()
    told, entered = threading.Event(), threading.Event()

    def enter():
        with measuring_lock(lambda line: told.set(), lock_file=lock_file):
            entered.set()

    newcomer = threading.Thread(target=enter)
    newcomer.start()
    assert told.wait(60)
    assert not entered.is_set()
    orphan.kill()
    orphan.wait()
    newcomer.join(60)
    assert entered.is_set()
