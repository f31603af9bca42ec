"""The recipe for sharded NNX models: as a script, and measured by its suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flax")

EXAMPLES = Path(__file__).parents[2] / "examples"
UNSET = ("XLA_FLAGS", "JAX_ENABLE_X64")


def run(*arguments):
    environment = {name: value for name, value in os.environ.items() if name not in UNSET}
    process = subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"COLUMNS": "200"},
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_the_script_restores_onto_half_and_onto_twice_the_devices():
    lines = run(EXAMPLES / "nnx_sharded_save.py").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["8 -> 4 devices", "8 -> 16 devices"]
    assert "(256, 256) of (256, 1024)" in lines[0]
    assert "(256, 64) of (256, 1024)" in lines[1]


@pytest.mark.nightly
def test_the_suite_passes_in_one_process_and_in_two(tmp_path):
    suite = EXAMPLES / "nnx_sharded_save.yaml"
    command = ["-m", "orbax_bench_core.cli", "run", suite, "-o", tmp_path / "run", "--no-lock"]
    quick = ("num_repeats=1", "execution={warmups: 0, processes: [1, 2]}")
    overrides = [word for change in quick for word in ("--override", change)]
    output = run(*command, "--no-limits", "--details", *overrides)
    assert "4 points verified against what was saved" in output
    assert "restore_devices=16" in output
