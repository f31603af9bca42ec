"""Every suite that Orbax publishes in its wheel parses and expands as it is."""

import importlib.util
from pathlib import Path

import pytest

from orbax_bench_core.config import SuiteError, load_suite
from orbax_bench_core.sweep.expansion import expand_here

LLAMA = "evaluations/model_sizes/llama-8b.yaml"


def published():
    """Every suite file in a folder `configs` of Orbax's framework, by its path from there."""
    (folder,) = importlib.util.find_spec(
        "orbax.checkpoint._src.testing.benchmarks"
    ).submodule_search_locations
    files = Path(folder).rglob("*.yaml")
    return {
        str(file.relative_to(folder)): file for file in sorted(files) if "configs" in file.parts
    }


def test_all_of_them_are_found():
    """Release 0.12.8 has 73, in three folders; a later one may have more."""
    assert len(published()) >= 73
    assert {Path(name).parts[0] for name in published()} >= {
        "configs",
        "orbax_load",
        "safetensors",
    }


@pytest.mark.parametrize("name", published())
def test_every_one_expands(name):
    assert expand_here(load_suite(str(published()[name]))).points


def test_a_suite_of_a_large_checkpoint_is_scaled_by_an_override():
    file = str(published()[f"configs/{LLAMA}"])
    loaded = load_suite(file, ["checkpoint_config={model: llama-8b, scale: 0.01}"])
    (point,) = expand_here(loaded).points
    assert point.checkpoint.label == "llama-8b@0.01"
    assert point.checkpoint.num_bytes < 10 * 2**20
    assert point.num_devices == 4


def test_a_suite_of_pytorch_takes_a_model_of_ones_own():
    (name,) = (name for name in published() if "pytorch_llama8b" in name)
    override = "benchmarks.0.options.reference_checkpoint_path=/models/own"
    (point,) = expand_here(load_suite(str(published()[name]), [override])).points
    assert point.benchmark == "pytorch_dcp"
    assert point.options["reference_checkpoint_path"] == "/models/own"
    assert point.options["save_thread_count"] == 16


@pytest.fixture
def simdevice_suite(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(
        "suite_name: s\nsimdevice: {device_type: v5p, topology: [2, 2, 1]}\n"
        "benchmarks: [{generator: save_restore, options: {}}]\n"
    )
    return str(file)


def test_a_suite_for_simdevice_is_refused(simdevice_suite):
    message = "simulated devices need the `simdevice` plugin, which is not published"
    with pytest.raises(SuiteError, match=message):
        load_suite(simdevice_suite)


def test_a_suite_for_simdevice_runs_on_cpu_devices_once_the_block_is_taken_away(simdevice_suite):
    assert len(expand_here(load_suite(simdevice_suite, ["simdevice=null"])).points) == 1
