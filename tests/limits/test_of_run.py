"""The limits of a run: measured once, and no reason for a run to fail."""

import json

import pytest

from orbax_bench_core.analysis.summary import ExtraColumns
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LocalHost, Output
from orbax_bench_core.limits import process, read_hosts, with_hosts
from orbax_bench_core.limits.model import read
from orbax_bench_core.limits.process import ensure_limits
from orbax_bench_core.records import State
from tests.support.limits import made_up


@pytest.fixture
def said():
    return []


@pytest.mark.slow
def test_the_limits_of_a_run_are_measured_once_of_the_fewest_bytes_at_least(
    make_run, make_record, said
):
    run = make_run([make_record(state=State(num_bytes=1 << 14, digest={}))])
    ensure_limits(run, said.append, LocalHost())
    first = read(run)
    assert first is not None
    assert first.num_bytes == 1 << 20
    ensure_limits(run, said.append, LocalHost())
    assert read(run) == first
    assert len(said) == 1
    assert "no limits" not in said[0]


def test_a_run_that_measured_nothing_has_no_limits(make_run, make_record, said):
    run = make_run([make_record()])
    ensure_limits(run, said.append, LocalHost())
    assert read(run) is None
    assert said == []


def test_limits_that_cannot_be_taken_are_said_and_no_more(make_run, make_record, said, monkeypatch):
    def full_disk(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(process, "existing_directory", full_disk)
    run = make_run([make_record(state=State(num_bytes=1 << 20, digest={}))])
    ensure_limits(run, said.append, LocalHost())
    assert said[-1] == "no limits: No space left on device"


@pytest.mark.parametrize(
    ("platform", "hosts", "alone"), [("tpu", 2, True), ("tpu", 1, False), ("gpu", 2, False)]
)
def test_the_chips_of_a_slice_are_left_alone_for_no_host_can_open_its_own(
    make_run, make_record, said, platform, hosts, alone
):
    variables = []

    class Asked(Three):
        def run_module(self, module, argument, **given):
            variables.append(given["variables"])
            return super().run_module(module, argument, **given)

    record = make_record(
        state=State(num_bytes=1 << 20, digest={}),
        num_hosts=hosts,
        provenance={"devices": {"platform": platform, "kind": "", "count": 4}},
    )
    ensure_limits(make_run([record]), said.append, Asked())
    assert [each.get("JAX_PLATFORMS") == "cpu" for each in variables] == [alone]


class Three(LocalHost):
    """Three hosts, of which one is slow and one has no room."""

    def run_module(self, module, argument, **_):
        asked = json.loads(argument)
        for host, seconds in ((0, 1.0), (1, 4.0), (2, None)):
            if seconds is None:
                yield Output(host=host, code=1, err="no room")
                continue
            named = {"host": {"name": f"node{host}"}}
            found = made_up({"write_fsync": seconds}, provenance=named)
            assert asked["path"]
            yield Output(host=host, code=0, out=found.model_dump_json())


def test_each_host_has_limits_of_its_own_and_the_slowest_is_named(make_run, make_record, said):
    run = make_run([make_record(state=State(num_bytes=1 << 20, digest={}))])
    ensure_limits(run, said.append, Three())
    hosts = read_hosts(run)
    assert sorted(hosts.hosts) == [0, 1]
    assert read(run) == hosts.hosts[0]
    assert said[-1] == f"no limits of host 2: cannot measure the limits of {run.root}: no room"
    assert with_hosts(ExtraColumns(), hosts).legend == (
        "Limits of 2 hosts, each on its own: write + fsync 0.25 to 1 GiB/s, slowest host 1 (node1)."
    )


@pytest.mark.parametrize(
    "damage",
    ["", "{}", "null", "[" * 100_000, '{"schema_version": ' + "9" * 5000 + "}"],
    ids=["empty", "lacking", "null", "deep", "digits"],
)
@pytest.mark.parametrize("name", ["limits.json", "limits_of_hosts.json"])
def test_damaged_limits_are_not_taken_for_none(make_run, make_record, name, damage):
    run = make_run([make_record()])
    (run.root / name).write_text(damage)
    with pytest.raises(UserError, match=f"{name}: damaged: .*; remove it, and run"):
        (read if name == "limits.json" else read_hosts)(run)


def test_damaged_limits_are_said_and_stay(make_run, make_record, said):
    run = make_run([make_record(state=State(num_bytes=1 << 20, digest={}))])
    (run.root / "limits.json").write_text("{")
    ensure_limits(run, said.append, Three())
    assert len(said) == 1
    assert said[0].startswith(f"no limits: {run.root}/limits.json: damaged")
    assert (run.root / "limits.json").read_text() == "{"
