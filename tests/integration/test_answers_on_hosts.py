"""Answers on hosts of one machine: a study by real workers, drills by workers with a script."""

import json

import pytest

from tests.support.cluster import Hosts
from tests.support.processes import REAL_CLI

pytestmark = [pytest.mark.nightly, pytest.mark.extended]

SIZES = (96, 192, 384)
SUITE = f"""
suite_name: small
num_repeats: 2
checkpoint_configs:
{
    "".join(
        f"- spec: {{params: {{dtype: bfloat16, shape: [{size}, 64], sharding: [x, null]}}}}"
        + chr(10)
        for size in SIZES
    )
}
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: 3}}}}
benchmarks:
- {{generator: save_restore, options: {{async_enabled: [false, true]}}}}
"""


def test_three_hosts_measure_one_study_and_each_of_them_can_read_it(tmp_path):
    suite, out = tmp_path / "suite.yaml", tmp_path / "out"
    suite.write_text(SUITE)
    measuring = ("async-study", suite, "-o", out, "--no-lock", "--json")
    with Hosts(tmp_path, *measuring, size=3, cli=REAL_CLI) as hosts:
        assert hosts.codes(hosts.start_all()) == [0, 0, 0], hosts.said(0) + hosts.said(1)
        assert hosts.orphans() == []
    study = json.loads((out / "async_study.json").read_text())
    (series,) = study["series"]
    assert [size["num_parameters"] for size in series["sizes"]] == [size * 64 for size in SIZES]
    assert [size["num_bytes"] for size in series["sizes"]] == [size * 64 * 2 for size in SIZES]
    for size in series["sizes"]:
        assert size["background"]["blocked"]["n"] == size["blocking"]["blocked"]["n"] == 2
    records = [json.loads(path.read_text()) for path in out.glob("records/*/repeat_*/*.json")]
    assert {record["host"] for record in records} == {0, 1, 2}
    assert {record["status"] for record in records} == {"passed"}
    # Whoever starts the same two lines everywhere reads the study on every host at once.
    with Hosts(tmp_path, "async-study", out, "--json", size=3, cli=REAL_CLI) as reading:
        assert reading.codes(reading.start_all()) == [0, 0, 0], reading.said(1)
    assert json.loads((out / "async_study.json").read_text()) == study


SCRIPTED = """
suite_name: hosts
num_repeats: 1
execution: {warmups: 0, retries: 0}
benchmarks: [{generator: tests.support.scripted.Scripted, options: {%s}}]
"""


def command(folder, name, options, *flags):
    suite = folder / "suite.yaml"
    suite.write_text(SCRIPTED % options)
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
