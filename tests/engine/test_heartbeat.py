"""A step says each minute how far it is, in its log and in the run directory."""

import functools
import re

import pytest

from orbax_bench_core.engine import measurement, plan_sweep, run_sweep_point
from orbax_bench_core.execute import LocalHost, RunSettings
from orbax_bench_core.records import Heartbeat, RunDirectory
from tests.support.processes import ROOT
from tests.support.scripted import NAME

SUITE = f"""
suite_name: scripted
num_repeats: 4
execution: {{retries: 0, warmups: 0, rounds_per_process: 4}}
benchmarks: [{{generator: {NAME}, options: {{lasts_s: 0.2, save_s: [0.01, 0.02]}}}}]
"""


@pytest.mark.slow
def test_a_step_says_how_far_it_is_and_the_run_directory_holds_it(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(Heartbeat, "PERIOD_S", 0.2)
    host = LocalHost(module="tests.support.fake_worker")
    monkeypatch.setattr(measurement, "RunSettings", functools.partial(RunSettings, host=host))
    place = str(tmp_path / "out")
    points = plan_sweep(SUITE, place).value
    run_sweep_point(points, place, measure_limits=False, lock=False)
    said = re.findall(
        r"orbax-bench: (\d) of 2 points, (\d) of 8 repeats(?:, about \d+ s left)?\n",
        capfd.readouterr().out,
    )
    assert len(said) > 3
    assert [int(made) for _, made in said] == sorted(int(made) for _, made in said)
    [last] = Heartbeat.all_of(RunDirectory(place))
    assert (last.ended, last.points_done, last.repeats_done) == (True, 2, 8)
    assert last.words == "2 of 2 points, 8 of 8 repeats"
