"""Plans of a start on a Ray cluster, and the actor that starts it, without Ray."""

import signal
import sys
import time
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import Launch, place_named, place_settings
from orbax_bench_core.launchers.hardware import slice_shape
from orbax_bench_core.launchers.ray_host import host_actor


def make(*settings, hosts=3, **fields):
    place = place_named("ray")
    launch = Launch(
        name="ob-tiny",
        command=("orbax-bench", "run", "a suite.yaml", "-o", "out"),
        output_directory="out",
        hosts=hosts,
        **fields,
    )
    return place.launcher(launch, place_settings(place, settings))


@pytest.fixture
def host():
    """An actor, as an object of this process."""
    made = host_actor()()
    yield made
    made.stop(0)
    all_said(made)


def shell(host, line, **sets):
    host.start(["sh", "-c", line], sets, "/nowhere")


def all_said(host):
    lines, code, deadline = [], None, time.monotonic() + 60
    while code is None and time.monotonic() < deadline:
        more, code = host.said(0.01)
        lines += more
    return lines, code


def test_a_dry_run_says_what_each_node_gives_and_starts():
    shown = make("address=10.0.0.1:6379", "gpus_per_host=8").shown()
    assert "# Ray cluster: 10.0.0.1:6379\n" in shown
    assert "STRICT_SPREAD over 3 nodes, each with CPU 1, GPU 8; waits 600 s" in shown
    assert "ORBAX_BENCH_HEAD=NODE:PORT ORBAX_BENCH_HOST=0 ORBAX_BENCH_NUM_HOSTS=3" in shown
    assert shown.endswith("-m orbax_bench_core.cli run 'a suite.yaml' -o out")
    assert make("program=orbax-bench").shown().endswith(" orbax-bench run 'a suite.yaml' -o out")


def test_a_slice_is_placed_as_ray_calls_it():
    shape = slice_shape("v5e", "4x8")
    shown = make(tpu=shape, hosts=shape.hosts).shown()
    assert "'topology': '4x8', 'accelerator_version': 'v5litepod', 'chips_per_vm': 4" in shown


def test_an_image_is_refused():
    with pytest.raises(UserError, match="--image"):
        make(image="repo@sha256:0")


def test_a_missing_client_is_one_message(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'orbax-bench\[ray\]'"):
        make().start()


def test_lines_come_before_the_exit_code(host):
    shell(host, "echo one; echo two >&2; printf three; exit 3")
    assert all_said(host) == (["one\n", "two\n", "three"], 3)


def test_nothing_said_yet_is_no_end(host):
    shell(host, "exec sleep 60")  # a child of the shell would outlive it
    assert host.said(0.01) == ([], None)


def test_a_host_is_told_to_end_first(host):
    shell(host, "trap 'echo leaving; exit 130' TERM; echo up; while :; do sleep 0.01; done")
    while host.said(0.1)[0] != ["up\n"]:
        pass
    host.stop(10)
    assert all_said(host) == (["leaving\n"], 130)


def test_a_host_that_does_not_end_is_killed(host):
    shell(host, "trap '' TERM; echo up; while :; do sleep 0.01; done")
    while host.said(0.1)[0] != ["up\n"]:
        pass
    host.stop(0.05)
    assert all_said(host) == ([], -signal.SIGKILL)


def test_what_ray_has_set_for_its_own_workers_is_taken_back(host, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MEGASCALE_NUM_SLICES", "7")
    shell(host, 'echo "$OMP_NUM_THREADS,$MEGASCALE_NUM_SLICES,$PWD,$OURS"', OURS="here")
    assert all_said(host) == ([f",,{Path.cwd()},here\n"], 0)
