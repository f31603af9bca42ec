"""Counts: trials that go on where they were stopped."""

import concurrent.futures
import sys

import pytest

from perf.counts.__main__ import main
from perf.counts.table import COUNTS, Count
from tests.support.host_faults import FAULTS

COMMAND = (sys.executable, "-S", "-c")


def count(code="print('seen')", **fields):
    named = {"name": "one", "claim": "it holds", "trials": 3, "command": (*COMMAND, code)}
    return Count(**{**named, **fields})


@pytest.fixture
def run(tmp_path, capsys):
    def call(*arguments, counts):
        code = main(["--state", str(tmp_path), *arguments], counts)
        return code, capsys.readouterr().out

    return call


def test_it_goes_on_where_it_was_stopped(run, tmp_path):
    assert run("--most", "2", counts=[count()])[0] == 4
    with (tmp_path / "one.jsonl").open("a") as lines:
        lines.write('{"trial": 2, "ho')
    code, out = run(counts=[count()])
    assert code == 0
    assert out.startswith("one 3/3: holds")


def test_two_processes_share_the_trials(tmp_path):
    made = tmp_path / "made"
    slow = count(f"import time; open({str(made)!r}, 'a').write('{{trial}} '); time.sleep(0.2)")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda _: main(["--state", str(tmp_path)], [slow]), range(2)))
    assert sorted(made.read_text().split()) == ["0", "1", "2"]
    assert 0 in codes
    assert not list(tmp_path.glob(".one*"))


def test_too_many_failures_fail(run):
    failing = count("import sys; sys.exit('{trial}' == '1')")
    code, out = run(counts=[failing])
    assert code == 1
    assert "3 of 3 trials, 1 failed\n        trial 1: " in out
    assert run(counts=[count("raise SystemExit(1)", failures=3)])[0] == 0


def test_every_fault_of_hosts_is_counted():
    counted = {count.name for count in COUNTS if count.name.startswith("hosts_")}
    assert counted == {f"hosts_{fault}" for fault in FAULTS}


@pytest.mark.slow
def test_a_trial_that_hangs_has_failed(run):
    hanging = count("import time; time.sleep(60)", timeout_s=0.2, trials=1)
    code, out = run(counts=[hanging])
    assert code == 1
    assert "not done after 0.2 s" in out
