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
