"""Drills in which the store goes away: an emulated bucket behind a proxy that answers nobody."""

import json

import pytest

from tests.support.bucket import behind_faults
from tests.support.processes import run_cli

pytestmark = pytest.mark.nightly

SUITE = """
suite_name: store
num_repeats: 1
execution: {{retries: 0, timeout_s: 150}}
storage: ["gs://bench-bucket/store"]
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [64, 64]}}}}}}
benchmarks:
- generator: training_job
  options:
    save_interval_steps: 20
    matrix_size: 16
    kill: {{when: {when}, outage_s: {outage_s}, store_down: touch {away}, store_up: rm {away}}}
"""


@pytest.fixture
def drill(emulator, tmp_path):
    """Drills with a store that answers a status while it is away; returns what is found."""

    def run(when, status, outage_s):
        away = tmp_path / "away"
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE.format(when=when, outage_s=outage_s, away=away))
        with behind_faults(emulator, status, 10**9, "-", away) as environment:
            words = ("recovery", "--no-lock", "--json", suite, "-o", tmp_path / "out")
            done = run_cli(*words, environment=environment)
        assert not away.exists()
        (series,) = json.loads(done.stdout)["series"]
        return series

    return run


@pytest.mark.parametrize("status", [403, pytest.param(503, marks=pytest.mark.extended)])
def test_a_job_whose_bucket_is_gone_notices_and_goes_on_when_it_is_back(drill, status):
    series = drill("training", status, 90)
    assert (series["recovered"], series["verified"]) == (1, True)
