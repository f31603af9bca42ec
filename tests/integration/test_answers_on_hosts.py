"""Drills and soaks on two hosts of one machine, whose workers follow a script."""

import json

import pytest

from tests.support.cluster import Hosts

pytestmark = pytest.mark.nightly

SUITE = """
suite_name: hosts
num_repeats: 1
execution: {warmups: 0, retries: 0}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {%s}}]
"""


def command(folder, name, options, *flags):
    suite = folder / "suite.yaml"
    suite.write_text(SUITE % options)
    return (name, suite, "-o", folder / "out", "--no-lock", *flags)


def records(folder):
    return [
        json.loads(path.read_text()) for path in folder.glob("out/records/*/repeat_*/host_*.json")
    ]


@pytest.mark.extended
def test_a_drill_kills_a_process_of_another_host(tmp_path):
    with Hosts(tmp_path, *command(tmp_path, "recovery", "", "--json")) as hosts:
        assert hosts.codes(hosts.start_all()) == [0, 0], hosts.said(0) + hosts.said(1)
        assert hosts.orphans() == []
    (series,) = json.loads((tmp_path / "out" / "recovery.json").read_text())["series"]
    assert (series["drills"], series["recovered"]) == (1, 1)
    assert {(one["host"], one["status"]) for one in records(tmp_path)} == {
        (0, "passed"),
        (1, "passed"),
    }


def test_a_drill_kills_a_host_and_waits_until_it_is_started_again(tmp_path):
    words = command(tmp_path, "recovery", "kill: host, save_interval_steps: 2")
    with Hosts(tmp_path, *words) as hosts:
        head, agent = hosts.start_all()
        hosts.wait_for(lambda: agent.poll() is not None)
        assert agent.returncode == -9
        hosts.wait_until_said(0, "to come back")
        again = hosts.start(1)
        assert hosts.codes([head, again]) == [0, 0], hosts.said(0) + hosts.said(1)
    (series,) = json.loads((tmp_path / "out" / "recovery.json").read_text())["series"]
    assert (series["drills"], series["recovered"]) == (1, 1)
    (start,) = [phase for phase in series["phases"] if phase["phase"] == "start"]
    assert start["median"] > 0.5  # of which the host was away for most


@pytest.mark.extended
def test_each_host_of_a_soak_is_judged_by_itself(tmp_path):
    words = command(tmp_path, "soak", "keeps_mib: 1.0", "--saves", "200", "--json")
    with Hosts(tmp_path, *words) as hosts:
        codes = hosts.codes(hosts.start_all())
        assert codes == [3, 3], hosts.said(0) + hosts.said(1)
        assert hosts.orphans() == []
    found = json.loads((tmp_path / "out" / "soak.json").read_text())
    assert len(found["series"]) == 2
