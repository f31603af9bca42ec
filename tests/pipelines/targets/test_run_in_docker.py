"""Arguments of containers; tests/images/test_containers.py runs them."""

import io

import pytest

pytest.importorskip("kfp")
pytest.importorskip("docker", reason="run `make setup`: the package docker is missing")

from orbax_bench_components.image import IMAGE
from orbax_bench_core.config import UserError
from orbax_bench_core.execute import LOCK_FILE
from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement
from orbax_bench_pipelines.targets.docker import handed_on, images_of, run_in_docker, shared_paths

SWEEP = find_pipeline("sweep").build(Placement())


def test_steps_take_the_lock_of_this_machine(tmp_path):
    shared = shared_paths({"output_directory": str(tmp_path)})
    assert shared[LOCK_FILE] is True
    assert shared[tmp_path] is True


def test_what_changes_a_benchmark_is_handed_on():
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--x", "HOME": "/root", "PATH": "/bin"}
    assert handed_on(environment) == {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--x"}


def test_the_images_of_a_pipeline_are_each_named_once():
    assert images_of(SWEEP) == [IMAGE]


def test_without_an_engine_it_says_what_to_do(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(UserError, match=r"reaches no engine: .* or run the pipeline without"):
        run_in_docker(SWEEP, {}, log=io.StringIO(), say=print)
