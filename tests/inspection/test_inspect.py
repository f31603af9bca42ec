"""What an inspection says of sound checkpoints."""

import subprocess
import sys

import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.inspection import inspect_checkpoint, inspection_document
from orbax_bench_core.plan import plan_checkpoint
from tests.support.shown import assert_told


@pytest.mark.parametrize(
    ("name", "zarr", "compressor"),
    [("ocdbt", 3, "zstd"), ("folders", 3, None), ("zarr2", 2, "zstd")],
)
def test_every_format_is_read_back(saved, name, zarr, compressor):
    found = inspect_checkpoint(str(saved(name)))
    stored = {array.name: array for array in found.stored.arrays}
    assert not found.problems
    assert found.stored.is_committed
    assert (found.stored.ocdbt, found.stored.processes) == (name == "ocdbt", 1)
    assert set(stored) == {"params.w", "params.b", "params.layers.0", "params.layers.1", "step"}
    w = stored["params.w"]
    assert (w.zarr.zarr_format, w.zarr.compressor) == (zarr, compressor)
    assert (w.zarr.shape, w.zarr.chunk_shape, w.zarr.dtype) == ((64, 128), (16, 128), "float32")
    assert (w.mesh, w.spec, len(w.chunks)) == ({"data": 2, "fsdp": 4}, ("fsdp", None), 4)
    assert stored["params.layers.0"].path == ("params", "layers", 0)
    assert stored["step"].is_scalar
    assert found.stored.strings == ("name",)
    assert found.stored.save_s > 0
    values = 64 * 128 * 4 + 128 * 4 + 32 * 8 * 4 + 2 + 8
    assert found.array_bytes == values
    assert found.ratio == pytest.approx(1, abs=0.1)


def test_the_root_and_its_item_are_the_same_checkpoint(saved):
    of_root, of_item = (
        inspect_checkpoint(str(path)).summary()
        for path in (saved("ocdbt"), saved("ocdbt") / "state")
    )
    assert {**of_item, "path": ""} == {**of_root, "path": ""}


def test_reads_are_those_of_the_plan(saved):
    found = inspect_checkpoint(str(saved("ocdbt")), mesh="fsdp=8", devices_per_host=4)
    plan = plan_checkpoint(str(saved("ocdbt")), restore_mesh="fsdp=8", restore_devices_per_host=4)
    first = found.reads[0]
    assert first.mesh == plan.restore_mesh
    assert first.reading.most.tolist() == plan.reading.most.tolist()
    assert first.memory == plan.memory.load
    assert found.unfit == ("params.layers.0", "params.w")
    hosts = found.hosts().set_index("hosts")
    assert sorted(hosts.index) == [1, 2, 4, 8]
    assert (hosts.least_ratio <= hosts.most_ratio).all()
    assert found.arrays().set_index("name").chunks["params.w"] == 4


def test_numbers_of_hosts_that_are_no_box_of_the_mesh_are_left_out(saved):
    found = inspect_checkpoint(str(saved("ocdbt")), mesh="fsdp=4,x=3", devices_per_host=4)
    assert sorted(found.hosts().hosts) == [1, 2, 4]
    assert (
        found.replicated_share
        == inspect_checkpoint(
            str(saved("ocdbt")), mesh="fsdp=4,x=3", devices_per_host=12
        ).replicated_share
    )


def test_without_a_mesh_it_is_that_which_was_saved_from(saved):
    found = inspect_checkpoint(str(saved("folders")))
    assert found.mesh.label == "data=2,fsdp=4"
    assert found.unfit == ()
    assert found.reads[0].reading.most_ratio == 1
    assert 0.4 < found.replicated_share < 0.9


def test_advice_follows_from_what_was_found(saved):
    text = " ".join(
        inspect_checkpoint(str(saved("folders")), mesh="z=8", devices_per_host=1).advice
    )
    assert "hosts together read 8 copies" in text
    limited = inspect_checkpoint(str(saved("folders")), restore_limit=1000).advice
    assert limited[0].startswith("the load will fail: one shard of params.w reads 8 KiB")
    assert "costs time for nothing" not in text


def test_a_whole_checkpoint_is_told_first(saved):
    document = inspection_document(inspect_checkpoint(str(saved("ocdbt"))))
    assert document.headline.said.startswith(
        "✓ WHOLE: nothing is missing of 4 arrays with 33.5 KiB, saved by 1 process in "
    )
    page = assert_told(document)
    assert "commit_success.txt" in page
    assert "params.w" in page


def test_numbers_alone_are_whole_and_nothing_is_advised(tmp_path):
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "numbers", {"step": 1, "rate": 0.5})
    document = inspection_document(inspect_checkpoint(str(tmp_path / "numbers")))
    assert document.headline.said.startswith("✓ WHOLE: nothing is missing of 0 arrays")
    assert document.following is None  # `init` describes arrays, and refuses a tree without any
    assert "compression" not in assert_told(document)


def test_unfinished_saves_beside_it_are_named(copied):
    path = copied("folders")
    (path.parent / "9.orbax-checkpoint-tmp").mkdir()
    (advice,) = inspect_checkpoint(str(path)).advice
    assert "next to it, 9.orbax-checkpoint-tmp, which last changed" in advice


def test_a_mesh_that_cannot_hold_it_is_explained(saved):
    with pytest.raises(UserError, match="cannot split into 3 equal parts"):
        inspect_checkpoint(str(saved("folders")), mesh="fsdp=3")


REMOTE = """
import sys
from pathlib import Path
from etils import epath
local, remote = Path(sys.argv[1]), epath.Path("gs://bench-bucket/run/5")
for file in local.rglob("*"):
    if file.is_file():
        (remote / str(file.relative_to(local))).write_bytes(file.read_bytes())
from orbax_bench_core.inspection import inspect_checkpoint
sound = inspect_checkpoint("gs://bench-bucket/run/5")
print(sound.problems, sound.stored.commit, sound.inventory.file_count, sound.mesh.label)
print(sound.value_bytes, "jax" in sys.modules)
(remote / "commit_success.txt").unlink()
print(inspect_checkpoint("gs://bench-bucket/run/5").problems)
"""


@pytest.mark.nightly
def test_a_checkpoint_in_a_bucket_is_read_without_jax(emulator, saved):
    done = subprocess.run(
        [sys.executable, "-c", REMOTE, str(saved("ocdbt"))],
        env=emulator,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = inspect_checkpoint(str(saved("ocdbt")))
    assert done.stdout.splitlines() == [
        f"() yes: commit_success.txt is there {here.inventory.file_count} data=2,fsdp=4",
        f"{here.value_bytes} False",
        (
            "('commit_success.txt is missing, without which Orbax takes a checkpoint in object "
            "storage for unfinished: the save has not ended, or a copy left it out',)"
        ),
    ]


@pytest.mark.slow
def test_a_checkpoint_of_the_earlier_interface_is_read(tmp_path):
    import numpy as np
    from orbax import checkpoint

    tree = {"params": {"w": np.ones((8, 4), "float32"), "empty": {}}, "step": 3}
    checkpoint.PyTreeCheckpointer().save(tmp_path / "a", tree)
    found = inspect_checkpoint(str(tmp_path / "a"))
    assert not found.problems
    assert (found.stored.item, found.stored.is_committed) == ("", True)
    assert [array.name for array in found.stored.arrays] == ["params.w", "step"]
