"""Plans of a start on a Ray cluster, and the actor that starts it, without Ray."""

import signal
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import make_launcher
from orbax_bench_core.launchers.ray_host import RayHost


def make(*settings, hosts=3, **fields):
    command = ("orbax-bench", "run", "a suite.yaml", "-o", "out")
    given = {"name": "ob-tiny", "command": command, "output_directory": "out", **fields}
    return make_launcher("ray", settings, (), hosts=hosts, **given)


@pytest.fixture
def host():
    """An actor, as an object of this process."""
    made = RayHost()
    yield made
    made.stop(0)


def said(host, line, **sets):
    """Yields what a shell prints, and its exit code."""
    return host.run(["sh", "-c", line], sets, "/nowhere")


def test_a_dry_run_says_what_each_node_gives_and_starts():
    shown = make("address=10.0.0.1:6379", "gpus_per_host=8").shown()
    assert "# Ray cluster: 10.0.0.1:6379\n" in shown
    assert "STRICT_SPREAD over 3 nodes, each with CPU 1, GPU 8; waits 600 s" in shown
    assert "ORBAX_BENCH_HEAD=NODE:PORT ORBAX_BENCH_HOST=0 ORBAX_BENCH_NUM_HOSTS=3" in shown
    assert shown.endswith("-m orbax_bench_core.cli run 'a suite.yaml' -o out")
    assert make("program=orbax-bench").shown().endswith(" orbax-bench run 'a suite.yaml' -o out")


def test_a_slice_is_placed_as_ray_calls_it():
    shown = make(tpu="v5e:4x8", hosts=8).shown()
    assert "'topology': '4x8', 'accelerator_version': 'v5litepod', 'chips_per_vm': 4" in shown


def test_an_image_is_refused():
    with pytest.raises(UserError, match="--image"):
        make(image="repo@sha256:0")


def test_lines_come_before_the_exit_code(host):
    line = "echo one; echo two >&2; printf three; exit 3"
    assert list(said(host, line)) == ["one\n", "two\n", "three", 3]


def test_a_host_is_told_to_end_first(host):
    line = "trap 'echo leaving; exit 130' TERM; echo up; while :; do sleep 0.01; done"
    lines = said(host, line)
    assert next(lines) == "up\n"
    host.stop(60)
    assert list(lines) == ["leaving\n", 130]


def test_a_host_that_does_not_end_is_killed(host):
    lines = said(host, "trap '' TERM; echo up; while :; do sleep 0.01; done")
    assert next(lines) == "up\n"
    host.stop(0.05)
    assert list(lines) == [-signal.SIGKILL]


def test_what_ray_has_set_for_its_own_workers_is_taken_back(host, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MEGASCALE_NUM_SLICES", "7")
    line = 'echo "$OMP_NUM_THREADS,$MEGASCALE_NUM_SLICES,$(pwd -P),$OURS"'
    assert list(said(host, line, OURS="here")) == [f",,{Path.cwd().resolve()},here\n", 0]
