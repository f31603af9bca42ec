"""Slices whose hosts a launcher starts from within a step: what is compiled, and one for real."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import parse_slice, place_settings
from orbax_bench_pipelines.definitions import PIPELINES
from orbax_bench_pipelines.targets import (
    Settings,
    Target,
    check_launchers,
    check_settings,
)
from tests.pipelines import strict
from tests.support.processes import plain_environment

IMAGE = "europe-docker.pkg.dev/p/r/orbax-bench@sha256:" + "0" * 64
CLOUD = {"project": "p-1", "location": "us-central1", "service_account": "me@p.iam"}
documents = functools.partial(strict.documents, image=IMAGE)


def tasks(spec, of):
    return [task for name, task in strict.tasks(spec) if name.startswith(of)]


def constants(spec, of):
    """Returns the inputs of a step that are written into the pipeline."""
    [task] = tasks(spec, of)
    given = task["inputs"]["parameters"]
    return {
        name: each["runtimeValue"]["constant"]
        for name, each in given.items()
        if "constant" in each.get("runtimeValue", {})
    }


def executor(spec, label="exec-run-sweep-point"):
    return spec["deploymentSpec"]["executors"][label]["container"]


def test_a_slice_of_several_hosts_is_a_jobset_on_kubeflow():
    spec, platform = documents(
        Target.KFP,
        tpu=["v5e:4x8"],
        service_account="bench",
        launcher_settings={"queue": "tpus"},
        node_selectors={"pool": "bench"},
        tolerations={"key": "only", "operator": "Equal", "value": "bench", "effect": "NoSchedule"},
        pvc={"name": "runs", "path": "/runs"},
        cpu="8",
        environment={"TEAM": "ml"},
    )
    strict.pipeline_spec(spec)
    given = constants(spec, "run-sweep-point")
    assert (given["launcher"], given["tpu"]) == ("jobset", "v5e:4x8:ct5lp-hightpu-4t")
    assert constants(spec, "begin-run")["processes"] == 8.0
    # All of it as inputs of the step, which nothing on the way loses.
    settings = place_settings("jobset", given["launcher_settings"])
    assert (settings.service_account, settings.queue, settings.cpu) == ("bench", "tpus", "8")
    assert (settings.volume, settings.node_selector) == ("runs:/runs", {"pool": "bench"})
    toleration = {"key": "only", "operator": "Equal", "value": "bench", "effect": "NoSchedule"}
    assert settings.tolerations == [toleration]
    assert settings.environment == {"TEAM": "ml"}
    # The step itself runs on any node.
    config = strict.platform_spec(platform)["exec-run-sweep-point"]
    assert not config.node_selector.labels and not config.tolerations
    assert "resources" not in executor(spec)


@pytest.mark.parametrize(("tpu", "processes"), [("v5e:2x4", None), ("v6e:4x4", 4.0)])
def test_every_slice_is_a_custom_job_on_vertex(tpu, processes):
    [spec] = documents(
        Target.VERTEX,
        tpu=[tpu],
        **CLOUD,
        labels={"team": "ml"},
        launcher_settings={"strategy": "SPOT"},
    )
    strict.pipeline_spec(spec)
    given = constants(spec, "run-sweep-point")
    shape = parse_slice(given["tpu"])
    assert (given["launcher"], shape) == ("vertex", parse_slice(tpu))
    assert constants(spec, "begin-run").get("processes") == processes
    settings = place_settings("vertex", given["launcher_settings"])
    assert (settings.project, settings.location) == ("p-1", "us-central1")
    assert (settings.service_account, settings.strategy) == ("me@p.iam", "SPOT")
    assert settings.labels == {"team": "ml"}
    assert "resources" not in executor(spec)
    [task] = tasks(spec, "run-sweep-point")
    outputs = spec["components"][task["componentRef"]["name"]]["outputDefinitions"]
    assert outputs["parameters"] == {"gcp_resources": {"parameterType": "STRING"}}


GPUS = {"gpu": "h100-80gb:8", "gpu_hosts": 4}


def test_machines_with_gpus_are_a_custom_job_on_vertex():
    machine = {"machine_type": "a3-highgpu-8g"}
    [spec] = documents(Target.VERTEX, **GPUS, **CLOUD, launcher_settings=machine, spot=True)
    strict.pipeline_spec(spec)
    given = constants(spec, "run-sweep-point")
    settings = place_settings("vertex", given["launcher_settings"])
    gpus = (settings.machine_type, settings.accelerator_type, settings.accelerator_count)
    assert gpus == ("a3-highgpu-8g", "NVIDIA_H100_80GB", 8)
    assert (given["expect"], settings.strategy) == ("gpu:h100-80gb:32", "SPOT")
    assert "resources" not in executor(spec)


@pytest.mark.parametrize(
    ("target", "given", "said"),
    [
        (Target.KFP, {"gpu_hosts": 2}, "gpu_hosts: says how many machines with GPUs"),
        (Target.KFP, {**GPUS, "image": "a/b:1"}, "gpu_hosts=4 is started by a launcher"),
        (Target.KFP, {**GPUS, "priority": "p", "queue": "q"}, "the hosts of gpu_hosts=4 do not"),
        (Target.VERTEX, {**GPUS, **CLOUD, "cpu": "8"}, "cpu: the machines of launcher_settings"),
        (Target.VERTEX, {**GPUS, **CLOUD}, "--set machine_type: needed without --tpu"),
    ],
)
def test_machines_with_gpus_that_no_launcher_could_start_are_refused(target, given, said):
    settings = Settings.model_validate({"image": IMAGE, **given})
    with pytest.raises(UserError) as refused:
        check_settings(settings, target)
        check_launchers(settings, target, "gs://bucket/run")
    assert said in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(each, marks=[] if each.name == "regression" else pytest.mark.extended)
        for each in PIPELINES
    ],
    ids=lambda pipeline: pipeline.name,
)
def test_every_pipeline_takes_both_kinds_of_slices(pipeline):
    spec, platform = documents(Target.KFP, pipeline.name, tpu=["v5e:2x4", "v5e:4x8"])
    strict.pipeline_spec(spec)
    strict.platform_spec(platform)
    launchers = {
        task["inputs"]["parameters"].get("launcher", {}).get("runtimeValue", {}).get("constant")
        for task in tasks(spec, "run-sweep-point")
    }
    assert launchers == {None, "jobset"}
    [vertex] = documents(Target.VERTEX, pipeline.name, tpu=["v5e:2x4", "v5e:4x8"], **CLOUD)
    strict.pipeline_spec(vertex)


SUITE = """
suite_name: small
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks: [{generator: save_restore, options: {}}]
"""
PIPELINE = """
import json
import sys
from pathlib import Path
from kfp import dsl, local
from orbax_bench_pipelines.targets.local import own_processes
from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.run_sweep_point import run_sweep_point

processes, given = json.loads(sys.argv[4])
run = {"pipeline_run": dsl.PIPELINE_JOB_ID_PLACEHOLDER}
runner, root = local.SubprocessRunner(use_venv=False), sys.argv[3]
local.init(runner, pipeline_root=root, workspace_root=f"{root}_workspace")


@dsl.pipeline
def launching(suite: str, directory: str):
    plan = plan_sweep(suite=suite, output_directory=directory, processes=processes, **run)
    with dsl.ParallelFor(plan.outputs["Output"]) as point:
        measured = run_sweep_point(
            **run,
            point=point,
            output_directory=directory,
            measure_limits=False,
            lock=False,
            **given,
        )
    aggregate(output_directory=directory, **run).after(measured)


with own_processes(Path.cwd()):
    launching(suite=open(sys.argv[1]).read(), directory=sys.argv[2])
"""


def run_pipeline_of_components(folder, processes, **given):
    """Runs the pipeline above by Kubeflow's local runner, in a process of its own."""
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "pipeline.py").write_text(PIPELINE)
    words = ("suite.yaml", folder / "out", folder / "root")
    return subprocess.run(
        [sys.executable, "pipeline.py", *map(str, words), json.dumps([processes, given])],
        cwd=folder,
        capture_output=True,
        text=True,
        env=plain_environment(),
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_a_step_for_tpus_in_an_environment_for_cpus_fails_before_it_measures(tmp_path):
    done = run_pipeline_of_components(tmp_path, 1, expect="tpu:v5e:4")
    assert done.returncode != 0
    assert "expected tpu:v5e:4, and JAX found 4 x cpu (cpu): nothing was measured" in done.stdout
    assert not list(tmp_path.glob("out/records/*/*/*"))


@pytest.mark.nightly
def test_a_step_launches_processes_that_measure_its_point_together(tmp_path):
    done = run_pipeline_of_components(tmp_path, 2, launcher="processes")
    assert done.returncode == 0, done.stdout + done.stderr
    records = [
        json.loads(file.read_text()) for file in tmp_path.glob("out/records/*/*/host_*.json")
    ]
    assert sorted(record["host"] for record in records) == [0, 1]
    assert {record["status"] for record in records} == {"passed"}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "complete"
    # Nobody created a job of Google Cloud, and the output that would name it is there.
    [noted] = Path(tmp_path / "root").rglob("gcp_resources")
    assert json.loads(noted.read_text()) == {"resources": []}
    [artifact] = Path(tmp_path / "root").rglob("records")
    [point_id] = {record["point_id"] for record in records}
    assert list(json.loads(artifact.read_text())["points"]) == [point_id]
