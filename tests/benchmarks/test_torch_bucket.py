"""The benchmarks of PyTorch with their checkpoints in an object store."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

pytestmark = pytest.mark.nightly  # which installs PyTorch

SUITE = """\
suite_name: remote
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 4]}}}
benchmarks:
- {generator: pytorch_dcp, options: {async_enabled: [true, false]}}
- {generator: torch_save, options: {}}
- {generator: pytorch_safetensors, options: {}}
"""


def test_all_of_them_save_to_a_bucket_and_load_from_it(emulator, tmp_path):
    unset = ("XLA_FLAGS", "JAX_ENABLE_X64")
    environment = {name: value for name, value in emulator.items() if name not in unset}
    environment |= {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc"}
    (tmp_path / "suite.yaml").write_text(SUITE)
    places = [str(tmp_path / "suite.yaml"), "-o", "gs://bench-bucket/out", "--no-lock"]
    done = subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.cli", "run", *places, "--no-limits"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    bucket = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / "out"
    records = [json.loads(path.read_text()) for path in bucket.glob("records/*/*/*.json")]
    assert [record["state"]["verified"] for record in records] == ["saved"] * 4
    assert {path.suffix for path in bucket.glob("*/repeat_0/ckpt/*")} == {
        *(".distcp", "", ".pt", ".safetensors")
    }
