"""Drills and soaks on two hosts of one machine, whose workers follow a script."""

import json

import pytest

from tests.support.cluster import Hosts

pytestmark = [pytest.mark.nightly, pytest.mark.extended]

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
