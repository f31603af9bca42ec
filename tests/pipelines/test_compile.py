"""Compiled pipelines, read back with the protos of the services."""

import dataclasses
import functools
import json

import pytest

pytest.importorskip("kfp")

from orbax_bench_pipelines.compile import compiled, packages, write_packages
from orbax_bench_pipelines.definitions import PIPELINES, find_pipeline
from orbax_bench_pipelines.targets import Placement, Target
from orbax_bench_pipelines.targets.values import STEPS
from tests.pipelines import strict
from tests.pipelines.strict import documents, read

TWO_SLICES = {"tpu": ["v5e:2x4", "v6e:2x4"]}


def measuring(spec):
    return {
        name: executor["container"]
        for name, executor in spec["deploymentSpec"]["executors"].items()
        if name.startswith("exec-run-sweep-point")
    }


@pytest.fixture(scope="module")
def released():
    """The packages of a release, by name."""
    return dict(packages())


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_packages_parse_strictly_and_that_for_vertex_is_one_document(pipeline, released):
    spec, platform = read(released[f"{pipeline.name}-gke.yaml"])
    assert strict.platform_spec(platform).keys() == spec["deploymentSpec"]["executors"].keys()
    [vertex] = read(released[f"{pipeline.name}-vertex.yaml"])
    for each in (spec, vertex):
        assert strict.pipeline_spec(each).pipeline_info.name == f"orbax-bench-{pipeline.name}"


@pytest.mark.slow
def test_the_packages_of_a_release_are_written_to_a_folder_that_is_made(tmp_path, released):
    write_packages(tmp_path / "dist" / "pipelines")
    written = {path.name: path.read_text() for path in (tmp_path / "dist/pipelines").iterdir()}
    assert written == released
    assert len(written) == 2 * len(PIPELINES)


def test_only_steps_that_measure_on_tpus_ask_for_the_chips_and_the_nodes():
    spec, platform = documents(Target.KFP, tpu=["v5e:2x4"])
    [container] = measuring(spec).values()
    accelerator = container["resources"]["accelerator"]
    assert (accelerator["type"], accelerator["count"]) == ("google.com/tpu", "8")
    configs = strict.platform_spec(platform)
    config = configs.pop("exec-run-sweep-point")
    assert dict(config.node_selector.labels) == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    assert [(each.key, each.operator) for each in config.tolerations] == [
        ("google.com/tpu", "Exists")
    ]
    assert not any(other.node_selector.labels for other in configs.values())


def test_every_step_mounts_the_claims_and_has_the_labels():
    spec, platform = documents(
        Target.KFP, pvc={"name": "claim", "path": "/mnt/x"}, labels={"team": "ml"}
    )
    configs = strict.platform_spec(platform)
    assert configs.keys() == spec["deploymentSpec"]["executors"].keys()
    for config in configs.values():
        assert [mount.mount_path for mount in config.pvc_mount] == ["/mnt/x"]
        assert dict(config.pod_metadata.labels) == {"team": "ml"}


@pytest.mark.parametrize(
    ("target", "given", "limit"),
    [
        (Target.KFP, None, 1),
        (Target.VERTEX, None, 1),
        (Target.KFP, 5, 5),
        (Target.KFP, 0, None),
        (Target.LOCAL, None, None),
    ],
)
def test_points_on_a_cluster_are_measured_one_at_a_time_by_default(target, given, limit):
    spec = documents(target, parallelism=given)[0]
    [loop] = [task for task in inner(spec).values() if "parameterIterator" in task]
    assert loop.get("iteratorPolicy", {}).get("parallelismLimit") == limit


def inner(spec):
    """The tasks inside the exit handler, which are all but the exit task."""
    assert sorted(spec["root"]["dag"]["tasks"]) == ["exit-handler-1", "finish"]
    return spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]


def steps_of(spec):
    """Every task that runs a component, by name, with loops and conditions opened."""
    parts = spec["components"]
    return {
        name: task
        for name, task in strict.tasks(spec)
        if "dag" not in parts[task["componentRef"]["name"]]
    }


RUN_ID = {"runtimeValue": {"constant": "{{$.pipeline_job_uuid}}"}}


@pytest.mark.parametrize("package", ["gke", "vertex"])
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_the_last_step_runs_whatever_becomes_of_the_others(pipeline, package, released):
    spec = read(released[f"{pipeline.name}-{package}.yaml"])[0]
    last = spec["root"]["dag"]["tasks"]["finish"]
    assert last["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert last["dependentTasks"] == ["exit-handler-1"]
    # An exit task has nothing of other steps, whose outputs there may be none of.
    assert not inputs_of(last, "artifacts")
    others = {name: task for name, task in steps_of(spec).items() if name != "finish"}
    assert [
        name
        for name, task in others.items()
        if "triggerPolicy" in task and "strategy" in task["triggerPolicy"]
    ] == []


@pytest.mark.parametrize("package", ["gke", "vertex"])
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_no_step_asks_for_a_cache(pipeline, package, released):
    steps = steps_of(read(released[f"{pipeline.name}-{package}.yaml"])[0])
    assert any("run-sweep-point" in name for name in steps)
    asked = [name for name, task in steps.items() if task.get("cachingOptions")]
    assert asked == [], "kfp writes what is switched off as nothing"


@pytest.mark.parametrize("name", ["async-study", "calibration"])
def test_a_pipeline_that_lacks_results_fails_in_its_last_step(name, released):
    enforced = steps_of(read(released[f"{name}-vertex.yaml"])[0])["enforce-verdict"]
    assert enforced["inputs"]["parameters"]["lacking"] == {
        "taskOutputParameter": {"outputParameterKey": "Output", "producerTask": "aggregate"}
    }
    assert "triggerPolicy" not in enforced


@pytest.mark.parametrize("package", ["gke", "vertex"])
@pytest.mark.parametrize("name", ["sweep", "regression"])
def test_a_baseline_is_an_artifact_that_the_verdict_is_made_from(name, package, released):
    steps = steps_of(read(released[f"{name}-{package}.yaml"])[0])
    assert inputs_of(steps["judge-run"], "artifacts")["stored"] == from_the_beginning("stored")


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_the_suite_is_an_artifact_that_the_samples_are_made_from(pipeline, released):
    steps = steps_of(read(released[f"{pipeline.name}-vertex.yaml"])[0])
    together = steps.get("judge-run") or steps["aggregate"]
    assert inputs_of(together, "artifacts")["planned"] == from_the_beginning("planned")


def from_the_beginning(output):
    return {"taskOutputArtifact": {"outputArtifactKey": output, "producerTask": "begin-run"}}


@pytest.mark.parametrize("name", ["sweep", "regression"])
def test_a_run_waits_for_few_pods(name, released):
    """Kubeflow takes some ten seconds for each pod, one after the other."""
    spec = read(released[f"{name}-gke.yaml"])[0]

    def pods(tasks):
        """Returns how many run one after the other, and how many in all."""
        own = {key: cost(task) for key, task in tasks.items()}

        @functools.cache
        def end(key):
            return own[key][0] + max(map(end, tasks[key].get("dependentTasks", ())), default=0)

        return max(map(end, tasks)), sum(total for _, total in own.values())

    def cost(task):
        inside = spec["components"][task["componentRef"]["name"]].get("dag")
        if inside is None:
            return 2, 2  # a driver and a container
        # By Kubeflow's compiler: a driver for a group, and one for an item of a loop.
        drivers = 1 + ("parameterIterator" in task)
        return tuple(each + drivers for each in pods(inside["tasks"]))

    in_turn, in_all = pods(spec["root"]["dag"]["tasks"])
    assert (1 + in_turn, 1 + in_all) == (12, 12)  # with the driver of the root


def inputs_of(task, kind):
    return task.get("inputs", {}).get(kind, {})


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_packages_for_gke_and_vertex_differ_by_settings_of_their_platforms_alone(
    pipeline, released
):
    gke, vertex = (
        read(released[f"{pipeline.name}-{package}.yaml"])[0] for package in ("gke", "vertex")
    )

    def bare(spec):
        spec = json.loads(json.dumps(spec).replace("points-v5e-2x4", "points"))
        for container in measuring(spec).values():
            container.pop("resources", None)
        # A step is told the devices of the slice that the settings for GKE name.
        steps_of(spec)["run-sweep-point"]["inputs"]["parameters"].pop("expect", None)
        return spec

    assert bare(gke) == bare(vertex)


def test_settings_of_steps_are_for_those_that_pipelines_have(released):
    compiled_steps = (steps_of(read(text)[0]).values() for text in released.values())
    names = {task["componentRef"]["name"] for tasks in compiled_steps for task in tasks}
    assert names == {f"comp-{name}" for name in STEPS}


def test_a_package_has_the_points_per_step_that_it_was_compiled_with():
    pipeline = dataclasses.replace(find_pipeline("sweep"), defaults={"points_per_step": 7})
    [spec] = read(compiled(pipeline, Placement(Target.VERTEX)))
    given = spec["root"]["inputDefinitions"]["parameters"]["points_per_step"]
    assert given["defaultValue"] == 7.0


def test_each_slice_writes_to_a_folder_of_its_own():
    spec, _ = documents(Target.KFP, **TWO_SLICES)
    tasks = inner(spec)
    for suffix, name in (("", "v5e-2x4"), ("-2", "v6e-2x4")):
        chosen = tasks[f"begin-run{suffix}"]["inputs"]["parameters"]
        assert chosen["slice_name"]["runtimeValue"]["constant"] == name
        directory = tasks[f"judge-run{suffix}"]["inputs"]["parameters"]["output_directory"]
        assert directory["taskOutputParameter"]["producerTask"] == f"begin-run{suffix}"
    # Two that begin at once would both make the checkpoint that is missing.
    assert "begin-run" in tasks["begin-run-2"]["dependentTasks"]


def test_the_runs_of_a_schedule_share_no_folder():
    [spec] = documents(Target.VERTEX, folder_per_run=True)
    given = [steps_of(spec)[name]["inputs"]["parameters"] for name in ("begin-run", "finish")]
    for each in given:
        assert each["pipeline_run"] == RUN_ID
        assert each["folder_per_run"]["runtimeValue"]["constant"] is True
