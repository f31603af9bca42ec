"""`orbax-bench night`, and fourteen nights of it: what people are told, and nothing else."""

import contextlib
import os
import signal
import sys
import threading
import time
import types

import pytest

from orbax_bench_core.cli import watch as nights
from tests.support.disks import fill, small_disk
from tests.support.nights import drill
from tests.support.processes import ROOT
from tests.support.webhook import webhook  # noqa: F401 - a fixture

SUITE = """
suite_name: nightly
num_repeats: 2
execution: {{retries: 0, warmups: 0}}
gate: {{looks: [10], margin: 0.1, seed: 1}}
checkpoint_config: {{spec: {{a: {{dtype: float32, shape: [8]}}}}}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {options}}}]
arms: {{candidate: {{options: {{{candidate}}}}}}}
"""
CHILD = """
import os, runpy, signal, sys
if os.environ.get("NIGHT_DIES"):
    os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["orbax-bench", *sys.argv[1:]]
runpy.run_module("tests.support.fake_cli", run_name="__main__")
"""


@pytest.fixture
def one_night(orbax_bench, tmp_path, monkeypatch, webhook):
    """Makes a night; returns how the command ended."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    monkeypatch.setattr(nights, "_SELF", (sys.executable, "-c", CHILD))
    monkeypatch.setattr(nights, "_GRACE_S", 5.0)

    def make(options="{}", candidate="load_s: 0.0201", flags=(), text=None, **variables):
        suite = tmp_path / "suite.yaml"
        suite.write_text(text or SUITE.format(options=options, candidate=candidate))
        monkeypatch.delenv("NIGHT_DIES", raising=False)
        for name, value in {"MACHINE": "machine-1", **variables}.items():
            monkeypatch.setenv(name, value)
        below = str(tmp_path / "runs")
        return orbax_bench("night", str(suite), "--below", below, "--wait", "1s", *flags)

    return make


def newest(tmp_path):
    return max((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.slow
def test_a_night_that_is_killed_is_tried_again_and_told_once(one_night, webhook, tmp_path):
    done = one_night(NIGHT_DIES="1", flags=("--tries", "2"))
    assert done.code == 1
    assert done.err.count("it is tried again") == 1
    [(_, message)] = webhook.posted
    assert (message["state"], message["suite"]) == ("FAILED", "nightly")
    assert not list((tmp_path / "runs").glob("*/run.json"))
    ending = [path.read_text() for path in (tmp_path / "runs").glob("*/ending.md")]
    why = "no run was begun: ab was killed, often because memory ran out (try 2)"
    assert len(ending) == 1 and why in ending[0]
    assert message["lines"] == [why]


@pytest.mark.slow
def test_a_known_regression_is_silent(one_night, orbax_bench, webhook, tmp_path):
    slower = {"candidate": "load_s: 0.03"}
    assert one_night(**slower).code == 3
    accepted = orbax_bench("accept", tmp_path / "runs", "nightly", "--reason", "issue 1234")
    assert (accepted.code, accepted.err) == (0, "")
    assert one_night(**slower).code == 0
    assert webhook.states == ["REGRESSION"]
    ending = (newest(tmp_path) / "ending.md").read_text()
    assert "ACCEPTED" in ending
    assert "issue 1234" in ending


@pytest.mark.slow
def test_a_mistake_is_not_tried_again_and_says_what_it_is(one_night, webhook):
    done = one_night(text="suite_name: nightly\nbenchmarks: []\n")
    assert (done.code, "tried again" in done.err) == (2, False)
    assert (done.out.count("FAILED: the suite was refused"), "orbax-bench-ending" in done.out) == (
        1,
        False,
    )
    [(_, message)] = webhook.posted
    assert (message["state"], message["suite"]) == ("FAILED", "nightly")
    assert "the suite was refused" in message["lines"][0]


@pytest.mark.parametrize(
    "why",
    [
        pytest.param("No space left on device", marks=pytest.mark.nightly),
        pytest.param("Not a directory", marks=pytest.mark.slow),
    ],
)
def test_a_night_that_cannot_be_kept_is_told_once(one_night, webhook, tmp_path, monkeypatch, why):
    """Five times on a full disk, and twice below a folder that cannot be made."""
    monkeypatch.setattr("orbax_bench_core.engine.retrying.WAITS_S", (0.0, 0.0, 0.0))
    with contextlib.ExitStack() as stack:
        if why.startswith("No space"):
            fill(stack.enter_context(small_disk(tmp_path / "runs", "1m")))
        else:
            (tmp_path / "runs").write_text("a file")
        done = one_night(flags=("--tries", "2"))
    assert (done.code == 0, webhook.states) == (False, ["FAILED"])
    assert "warning: the report cannot be written: " in done.err
    assert why in done.err


@pytest.mark.slow
def test_a_night_that_hangs_is_ended_and_told(one_night, webhook, tmp_path):
    hangs = "{act: hang, lasts_s: 600, peers_wait_s: 600}"
    done = one_night(options=hangs, flags=("--limit", "5s"))
    assert done.code == 1
    [(_, message)] = webhook.posted
    assert message["state"] == "FAILED"
    assert "took longer than --limit" in str(message["lines"])


@pytest.mark.slow
@pytest.mark.parametrize("then", ["goes on", "has no name"])
def test_a_night_that_is_interrupted_is_told_once(one_night, orbax_bench, webhook, tmp_path, then):
    """By the attempt that goes on in its folder."""
    runs = tmp_path / "runs"

    def end():
        while not list(runs.glob("*/records/**/host_0.json")):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    options = "{lasts_s: 0.1, load_s: 0.02}"
    flags = () if then == "has no name" else ("--folder", "job-1")
    done = one_night(options, flags=flags)
    assert done.code == 130
    if then == "has no name":
        assert webhook.states == ["FAILED"]
        assert "interrupted" in str(webhook.posted[0][1]["lines"])
        return
    assert "the webhook is not told" in done.err
    assert orbax_bench("watch", runs).code == 0
    assert webhook.states == []
    assert one_night(options, flags=flags).code == 0
    assert webhook.states == ["PASS"]
    assert [path.parent.name for path in tmp_path.glob("runs/*/run.json")] == ["job-1"]
    assert "an earlier attempt was interrupted" in (newest(tmp_path) / "ending.md").read_text()


@pytest.mark.slow
def test_so_is_one_that_is_interrupted_between_two_tries(one_night, webhook, monkeypatch):
    clock = types.SimpleNamespace(
        monotonic=time.monotonic, sleep=lambda _: os.kill(os.getpid(), signal.SIGTERM)
    )
    monkeypatch.setattr(nights, "time", clock)
    assert one_night(NIGHT_DIES="1", flags=("--folder", "job-1")).code == 130
    assert webhook.states == []


@pytest.mark.parametrize("below", ["", "http://h/nights"])
def test_what_is_no_place_for_nights_is_refused_before_anything_is_told(
    orbax_bench, webhook, below
):
    done = orbax_bench("night", "suite.yaml", "--below", below, "--notify", webhook.url)
    assert (done.code, done.out, webhook.states) == (2, "", [])


def test_the_folder_of_a_night_is_a_name(one_night):
    done = one_night(flags=("--folder", "../elsewhere"))
    assert (done.code, done.err.count("error: --folder takes a name")) == (2, 1)


SLOWER = "sleeps_s: 0.02"  # beside the 0.02 s that are reported
NIGHTS = (
    ({}, "PASS"),  # nobody knew of it
    ({}, None),
    ({}, None),
    ({"NIGHT_DIES": "1", "flags": ("--tries", "2")}, "FAILED"),
    ({}, "PASS"),
    ({"text": "suite_name: nightly\nbenchmarks: []\n"}, "FAILED"),
    ({}, "PASS"),
    ({"options": "{act: hang}", "flags": ("--limit", "30s")}, "FAILED"),
    ({}, "PASS"),
    (None, "FAILED"),  # the machine is gone, and is replaced
    ({"MACHINE": "machine-2"}, "PASS"),
    ({"MACHINE": "machine-2", "candidate": SLOWER}, "REGRESSION"),
    ({"MACHINE": "machine-2", "candidate": SLOWER}, None),
    ({"MACHINE": "machine-2"}, "PASS"),
)


@pytest.mark.nightly
@pytest.mark.extended
def test_fourteen_nights_tell_what_people_want_to_hear(
    one_night, orbax_bench, webhook, tmp_path, capsys
):
    """Nights that die, hang, are missed and are slower; `make nights` shows the notifications."""
    told = drill(NIGHTS, one_night, orbax_bench, tmp_path / "runs", webhook, capsys)
    assert told == [expected for _, expected in NIGHTS]
