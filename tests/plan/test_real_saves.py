"""Plans beside what Orbax really wrote."""

import pytest

from tests.support.real_saves import (
    DEEP,
    MESHES,
    PLAIN,
    SMALL,
    Case,
    options_of_layouts,
    planned,
    save_all,
    wrong,
)

LAYOUTS = list(options_of_layouts())
NUMBERS = {**PLAIN, "step": "int", "name": "str"}


def some(first, step):
    """Returns every so many of all combinations of tree, mesh and layout."""
    trees = (PLAIN, DEEP, SMALL)
    cases = [Case(t, mesh, layout) for layout in LAYOUTS for mesh in MESHES for t in trees]
    return cases[first::step]


def check(cases, folder, processes):
    for case, saved in zip(cases, save_all(cases, folder, processes=processes), strict=True):
        assert not wrong(case, saved, processes), case


@pytest.mark.slow
def test_files_are_exact_and_bytes_within_a_quarter_of_a_percent(tmp_path):
    cases = [*some(5, 131), *(Case(NUMBERS, MESHES[0], layout) for layout in LAYOUTS[::24])]
    check(cases, tmp_path, 1)
    for case in cases:
        sure = not case.options["target_file_size"]
        sure &= case.spec is not NUMBERS or not case.options["use_ocdbt"]
        assert planned(case, 1).files.is_exact >= sure


@pytest.mark.nightly
@pytest.mark.parametrize("processes", [2, 4])
def test_files_are_exact_of_several_processes(tmp_path, processes):
    check(some(processes, 83), tmp_path, processes)


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
