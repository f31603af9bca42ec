"""Plans next to what Orbax really wrote."""

import pytest

from orbax_bench_core.plan.options import orbax_defaults
from tests.support.real_saves import (
    DEEP,
    MESHES,
    PLAIN,
    SMALL,
    Case,
    array,
    options_of_layouts,
    save_all,
    wrong,
)

LAYOUTS = list(options_of_layouts())
NUMBERS = {**PLAIN, "step": "int", "name": "str"}


BARE = {"use_compression": False}
ALONE = {"use_replica_parallel": False}
FOLDERS = {"enable_replica_parallel_separate_folder": True}
MODEL = {
    "embed": array((512, 64), "tensor", "fsdp"),
    "up": array((4, 64, 256), None, "fsdp", "tensor", dtype="bfloat16"),
    "norm": array((4, 64), None, "fsdp"),
    "opt": {"mu": array((4, 64, 256), None, "fsdp", "tensor"), "count": array((), dtype="int32")},
}
LISTED = [
    # processes, tree, mesh, options: what is not named is as Orbax has it
    (1, PLAIN, {"data": 8, "x": 1, "y": 1}, {}),
    (1, SMALL, {"x": 8, "y": 1}, BARE),
    (1, DEEP, {"z": 2, "x": 2, "y": 2}, {"use_zarr3": False}),
    (1, {"w": array((1021, 512))}, {"data": 8}, {}),
    (1, {"w": array((1021, 511))}, {"data": 8}, {}),
    (1, MODEL, {"data": 1, "fsdp": 4, "tensor": 2}, {"chunk_byte_size": 8192}),
    (4, PLAIN, {"x": 2, "y": 4}, {}),
    (4, PLAIN, {"data": 8, "x": 1, "y": 1}, BARE),
    (4, DEEP, {"z": 4, "x": 2, "y": 1}, {"use_ocdbt": False, "use_zarr3": False}),
    (4, MODEL, {"data": 8, "fsdp": 1, "tensor": 1}, {}),
    (4, MODEL, {"data": 4, "fsdp": 2, "tensor": 1}, FOLDERS),
    (4, MODEL, {"data": 4, "fsdp": 1, "tensor": 2}, BARE),
    (4, PLAIN, {"z": 2, "x": 2, "y": 2}, ALONE),
]
"""Layouts that plans are held against: a line more is a case more."""


@pytest.mark.slow
@pytest.mark.parametrize("processes", sorted({each[0] for each in LISTED}))
def test_a_plan_is_what_orbax_writes(tmp_path, processes):
    cases = [Case(*each[1:]) for each in LISTED if each[0] == processes]
    check(cases, tmp_path, processes)


def test_defaults_are_those_of_the_installed_orbax():
    from orbax.checkpoint import v1 as ocp
    from orbax.checkpoint._src.serialization.jax_array_handlers import ArrayHandler

    saving = ocp.Context().array.saving
    chunk = saving.storage_options.chunk_byte_size
    own = {n: getattr(saving, n) for n in orbax_defaults() if n != "chunk_byte_size"}
    own |= {"chunk_byte_size": chunk, "use_replica_parallel": ArrayHandler()._use_replica_parallel}
    assert orbax_defaults() == own


def some(first, step):
    """Returns every so many of all combinations of tree, mesh and layout."""
    trees = (PLAIN, DEEP, SMALL)
    cases = [Case(t, mesh, layout) for layout in LAYOUTS for mesh in MESHES for t in trees]
    return cases[first::step]


def check(cases, folder, processes):
    for case, saved in zip(cases, save_all(cases, folder, processes=processes), strict=True):
        assert not wrong(case, saved, processes), case


@pytest.mark.nightly
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_plan_of_many_layouts_is_what_orbax_writes(tmp_path, processes):
    numbers = [Case(NUMBERS, MESHES[0], layout) for layout in LAYOUTS[::24]]
    check([*some(processes, 83), *(numbers if processes == 1 else [])], tmp_path, processes)


@pytest.mark.nightly
@pytest.mark.extended
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_preset_as_a_suite_saves_it(tmp_path, processes):
    from orbax_bench_core.config import CheckpointConfig, MeshConfig, expanded, leaves

    mesh = MeshConfig(mesh_axes=("data", "fsdp"), ici_parallelism={"data": 2, "fsdp": 4})
    config = expanded(CheckpointConfig(model="llama-8b", scale=0.005, optimizer="adamw"), mesh)
    spec: dict = {}
    for path, leaf in leaves(config.spec):
        node = spec
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = {
            "shape": list(leaf.shape),
            "dtype": leaf.dtype,
            "sharding": [list(e) if isinstance(e, tuple) else e for e in leaf.sharding or ()],
        }
    case = Case(spec, {"data": 2, "fsdp": 4}, LAYOUTS[0])
    check([case], tmp_path, processes)
