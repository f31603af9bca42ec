"""Arguments of containers; tests/images/test_containers.py runs them."""

import io

import pytest

pytest.importorskip("kfp")
pytest.importorskip("docker", reason="run `make setup`: the package docker is missing")

from orbax_bench_components.image import IMAGE
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LOCK_FILE
from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement, Target, read_settings
from orbax_bench_pipelines.targets.docker import (
    images_of,
    run_in_docker,
    shared_paths,
    tell_images,
)

SWEEP = find_pipeline("sweep").build(Placement())


def test_steps_take_the_lock_of_this_machine(tmp_path):
    shared = shared_paths({"output_directory": str(tmp_path)})
    assert shared[LOCK_FILE] is True
    assert shared[tmp_path] is True


def test_the_images_of_a_pipeline_are_each_named_once():
    assert images_of(SWEEP) == [IMAGE]


def test_each_step_is_told_the_image_that_docker_has_under_its_name():
    settings = read_settings(None, {"image": "a/b:1", "steps": {"others": {"image": "c/d:1"}}})
    pipeline = find_pipeline("sweep").build(Placement(Target.DOCKER, settings))
    named = {image: f"{image}@sha256:{index}" for index, image in enumerate(images_of(pipeline))}
    tell_images(pipeline, named)
    executors = pipeline.pipeline_spec.deployment_spec["executors"].values()
    for container in (executor["container"] for executor in executors):
        [told] = [each for each in container["env"] if each["name"] == "ORBAX_BENCH_IMAGE"]
        assert told["value"] == named[container["image"]]
    assert set(named) == {"a/b:1", "c/d:1"}


def test_without_an_engine_it_says_what_to_do(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(UserError, match=r"cannot reach an engine: .* or run the pipeline without"):
        run_in_docker(SWEEP, {}, log=io.StringIO(), say=print)
