"""Checkpoints in an object store, by an emulated Cloud Storage."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gcp_storage_emulator")

# A process of its own: how one reaches an emulator is settled once per process.
LOAD = """
import sys
import jax
from etils import epath
from pathlib import Path
from orbax.checkpoint import v1 as ocp
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.tree import StateError
from orbax_bench_core.state.loading import load_checkpoint

local, remote = Path(sys.argv[1]), epath.Path("gs://bench-bucket/run/5")
tree = {"w": jax.numpy.arange(16.0), "n": {"b": jax.numpy.ones((8, 4), "bfloat16")}}
ocp.save(local, tree)
for file in local.rglob("*"):
    if file.is_file():
        (remote / str(file.relative_to(local))).write_bytes(file.read_bytes())
for path in ("gs://bench-bucket/run/5", "gs://bench-bucket/run/5/state"):
    loaded = load_checkpoint(CheckpointConfig(path=path))
    assert digest(loaded) == digest(tree), path
    assert loaded["w"].sharding.shard_shape((16,)) == (2,), path
for path in ("gs://bench-bucket/run", "gs://bench-bucket/absent"):
    try:
        load_checkpoint(CheckpointConfig(path=path))
    except StateError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_checkpoint_in_an_object_store_loads_by_its_root_and_by_its_item(
    emulator: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "local")],
        env=emulator,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == [
        ("'gs://bench-bucket/run' holds 1 checkpoint; give one, such as 'gs://bench-bucket/run/5'"),
        "'gs://bench-bucket/absent' does not exist; give the directory of a checkpoint",
    ]
