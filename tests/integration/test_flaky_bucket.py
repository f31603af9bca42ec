"""A bucket that is away for longer than its clients wait: a step goes on when it is back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

PROXY = Path(__file__).with_name("faulty_storage.py")
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
    target = emulator["STORAGE_EMULATOR_HOST"].removeprefix("http://")
    command = [sys.executable, PROXY, target, "503", "1000000000", "-", str(away)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        address = f"http://127.0.0.1:{int(proxy.stdout.readline())}"
        unset = ("XLA_FLAGS", "JAX_ENABLE_X64")
        environment = {name: value for name, value in emulator.items() if name not in unset}
        environment |= {
            "STORAGE_EMULATOR_HOST": address,
            "TENSORSTORE_GCS_HTTP_URL": address,
            "GOOGLE_CLOUD_PROJECT": "p",
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc",
        }

        def step(*arguments):
            return subprocess.Popen(
                [sys.executable, "-m", "orbax_bench_core.cli", "step", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )

        said = step("plan-sweep", suite, "-o", PLACE).communicate(timeout=120)[0]
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
        proxy.kill()
    assert measuring.returncode == 0, "".join(told) + errors
    assert json.loads(told[-1]) == ["passed"]
    assert any("the step is tried again in 10 s" in line for line in told), told
