"""A bucket that is away for longer than its clients wait: a step goes on when it is back."""

import json
import subprocess
import sys

import pytest

from tests.support.bucket import behind_faults

pytestmark = [pytest.mark.nightly, pytest.mark.extended]

SUITE = """\
suite_name: away
num_repeats: 2
execution: {warmups: 0}
benchmarks: [{generator: save_restore, options: {}}]
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64]}}}
"""
PLACE = "gs://bench-bucket/out"


@pytest.mark.parametrize(
    "when", ["from the start", pytest.param("repeat 0: passed", marks=pytest.mark.extended)]
)
def test_a_step_goes_on_when_its_bucket_is_back(emulator, tmp_path, when):
    away, suite = tmp_path / "away", tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    with behind_faults(emulator, 503, 10**9, "-", away) as environment:

        def step(*arguments):
            return subprocess.Popen(
                [sys.executable, "-m", "orbax_bench_core.cli", "step", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )

        said = step("plan-sweep", suite, "-o", PLACE).communicate(timeout=400)[0]
        [points] = json.loads(said.splitlines()[-1])
        if when == "from the start":
            away.touch()
        with step("run-sweep-point", points, "-o", PLACE, "--no-limits", "--no-lock") as measuring:
            told = []
            for line in measuring.stdout:
                told.append(line)
                if when in line and not any("tried again" in one for one in told):
                    away.touch()
                if "the step is tried again" in line:
                    away.unlink(missing_ok=True)
            errors = measuring.stderr.read()
    assert measuring.returncode == 0, "".join(told) + errors
    assert json.loads(told[-1]) == ["passed"]
    assert any("the step is tried again in 10 s" in line for line in told), told
