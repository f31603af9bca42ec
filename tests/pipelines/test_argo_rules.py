"""Compiled packages by the rules of Kubeflow Pipelines and Argo: ours, and bad ones by rule."""

import importlib.util
import re

import pytest

pytest.importorskip("kfp")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kfp import dsl, kubernetes

from orbax_bench_components.compile import COMPONENTS
from orbax_bench_components.compile import compiled as package_of
from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.compile import compiled, packages
from orbax_bench_pipelines.definitions import PIPELINES, find_pipeline
from orbax_bench_pipelines.targets import Placement, Target, check_settings, read_settings
from orbax_bench_pipelines.targets.honoured import HONOURED
from tests.support.argo_rules import LARGEST_SPEC, Workflow, refused_uri, violations
from tests.support.processes import ROOT

RUN = dsl.PIPELINE_JOB_ID_PLACEHOLDER
SERVICES = (Target.KFP, Target.VERTEX)


@dsl.component(base_image="python:3.12")
def plan(run: str = "") -> list:
    return [run]


@dsl.component(base_image="python:3.12")
def step(run: str = "", lacking: str = "", launcher: str = "") -> str:
    return run + lacking + launcher


@dsl.component(base_image="python:3.12")
def last(lacking: str = "") -> str:
    return lacking


@dsl.component(base_image="python:3.12")
def ending(status: dsl.PipelineTaskFinalStatus, run: str = "") -> str:
    return status.state + run


@dsl.container_component
def with_a_default(run: str, fixed: str = "x"):
    return dsl.ContainerSpec(image="i", command=["echo"], args=[run, fixed])


def package(build):
    """Compiles a pipeline of the steps that a function adds."""
    return package_of(dsl.pipeline(name="bad")(build))


# One function each, as people write them.
def hook_of_a_loop():
    with dsl.ParallelFor([1, 2]):
        measured = step(run=RUN)
    last(lacking="x").after(measured).ignore_upstream_failure()


def two_hooks_of_one():
    before = step(run=RUN)
    last(lacking="x").after(before).ignore_upstream_failure()
    last(lacking="x").after(before).ignore_upstream_failure()


def exit_task_that_takes_an_output():
    last(lacking=step(run=RUN).output).ignore_upstream_failure()


def tag_of_argo():
    step(run=RUN, lacking="{{workflow.name}}")


def one_long_argument():
    step(run=RUN, lacking="x" * 2**17)


def wrong_label():
    kubernetes.add_pod_label(step(run=RUN), "team", "a b")


def default_that_is_not_passed():
    with_a_default(run=RUN)


def served_from_a_cache():
    step()


def hosts_without_their_nodes():
    kubernetes.add_node_selector(step(run=RUN, launcher="jobset"), "pool", "bench")


BAD = {
    hook_of_a_loop: "last is a hook of the loop for-loop-2: it would never run",
    two_hooks_of_one: "step has two hooks",
    exit_task_that_takes_an_output: "runs whatever becomes of step, and takes an output of it",
    tag_of_argo: "Argo would resolve {{workflow.name}}, or fail to",
    one_long_argument: "argument list too long",
    wrong_label: "exec-step: label team=a b is invalid",
    default_that_is_not_passed: "parameter 'fixed' not found in executor input",
    served_from_a_cache: "root: step has no input that differs per run: a cache would serve it",
    hosts_without_their_nodes: "step keeps nodeSelector of its task, which its hosts do not get",
}


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_pipeline_is_refused_with_the_words_of_the_service(build):
    found = violations(package(build))
    assert [each for each in found if BAD[build] in each], found


def test_nothing_is_said_against_an_exit_handler_around_loops_conditions_and_plain_steps():
    def good(run: str = "x"):
        with dsl.ExitHandler(ending(run=run)):
            planned = plan(run=RUN)
            with dsl.ParallelFor(planned.output) as item:
                inside = step(run=RUN, lacking=item)
            after = step(run=RUN).after(inside)
            with dsl.If(after.output == "x"):
                step(run=RUN)
            with_a_default(run=RUN, fixed="y")

    assert violations(package(good), by_construction=True) == []


def test_caching_that_is_switched_off_can_be_switched_on_again():
    def switched_off():
        step().set_caching_options(False)

    assert violations(package(switched_off)) == []
    assert "a cache would serve it" in str(violations(package(switched_off), by_construction=True))


@pytest.mark.parametrize(
    ("uri", "root", "expected"),
    [
        ("/mnt/bench/run.json", None, "unrecognized uri format"),
        ("file:///mnt/bench/run.json", None, "unsupported Cloud bucket"),
        ("gs://bucket", None, "has empty key"),
        ("gs://other/run.json", "minio://mlpipeline/v2", "expected bucket prefix"),
        ("minio://mlpipeline/v2/a/run.json", "minio://mlpipeline/v2", None),
        ("gs://bucket/run.json", None, None),
    ],
)
def test_uris_that_the_launcher_refuses(uri, root, expected):
    found = refused_uri(uri, root)
    assert found is None if expected is None else expected in found


@pytest.mark.parametrize("target", SERVICES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
@pytest.mark.parametrize(
    ("folder_per_run", "tpu"), [(False, ["v5e:2x4"]), (True, ["v5e:2x4", "v5e:4x4"])]
)
def test_every_pipeline_is_accepted_by_both_services(pipeline, target, folder_per_run, tpu):
    asked = Placement(target, read_settings(None, {"tpu": tpu}), folder_per_run)
    assert violations(compiled(pipeline, asked), by_construction=True) == []


def test_the_packages_of_a_release_are_accepted_and_take_a_part_of_the_size():
    for name, text in packages():
        assert (name, violations(text, by_construction=True)) == (name, [])
        assert Workflow.of(text).bytes < LARGEST_SPEC // 2


def test_our_components_in_a_pipeline_of_ones_own_are_accepted():
    file = ROOT / "examples" / "use_in_your_pipeline.py"
    spec = importlib.util.spec_from_file_location("mine", file)
    mine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mine)
    found = violations(package_of(mine.choose_compression))
    # Steps that know nothing of us may be served from a cache.
    theirs = r"[-\w]+: (describe-model|choose-fastest) has no input that differs per run: .*"
    assert [each for each in found if not re.fullmatch(theirs, each)] == []


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.name)
def test_a_component_in_a_pipeline_of_ones_own_gets_what_differs_per_run(component):
    """A pipeline of someone else that gives what is required gives `pipeline_run`."""
    assert component.component_spec.inputs["pipeline_run"].optional is False


NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30)
PAIRS = st.dictionaries(NAME, NAME, max_size=3)
ASKED = {
    "image": st.just("a/b@sha256:" + "0" * 64),
    "steps": st.just({"aggregate": {"cpu": "4", "retries": 1}}),
    "parallelism": st.integers(0, 20),
    "tpu": st.lists(st.sampled_from(["v5e:2x4", "v5e:4x4", "v6e:2x4"]), unique=True, max_size=2),
    "gpu": st.sampled_from(["h100-80gb:8", "l4:1"]),
    "gpu_hosts": st.integers(1, 4),
    "retries": st.integers(0, 3),
    "backoff_s": st.integers(1, 600),
    "timeout_s": st.integers(1, 10_000),
    "environment": st.dictionaries(st.from_regex(r"[A-Z]{1,9}", fullmatch=True), TEXT, max_size=3),
    "secrets": st.just(
        [
            {"name": "storage", "key": "key", "variable": "TOKEN"},
            {"name": "certificates", "path": "/etc/bench"},
        ]
    ),
    "pull_secrets": st.lists(NAME, max_size=2),
    "pvc": st.just({"name": "runs", "path": "/runs"}),
    "shared_memory": st.just("16Gi"),
    "scratch": st.just({"path": "/scratch", "size": "200Gi"}),
    "node_selectors": PAIRS,
    "node_affinity": st.just({"key": "topology.kubernetes.io/zone", "values": ["a", "b"]}),
    "tolerations": st.just({"key": "dedicated", "effect": "NoSchedule"}),
    "spot": st.booleans(),
    "reservation": NAME,
    "flex_start": st.booleans(),
    "max_run_s": st.integers(1, 10_000),
    "ephemeral_storage": st.just("100Gi"),
    "security_context": st.just({"run_as_user": 0, "capabilities": ["SYS_RESOURCE"]}),
    "queue": NAME,
    "labels": PAIRS,
    "annotations": st.dictionaries(NAME, TEXT, max_size=3),
    "service_account": NAME,
    "cpu": st.sampled_from(["8", "500m"]),
    "memory": st.just("64Gi"),
}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_builder_makes_is_accepted(data):
    target = data.draw(st.sampled_from(SERVICES))
    name = data.draw(st.sampled_from([pipeline.name for pipeline in PIPELINES]))
    honoured = sorted(ASKED.keys() & HONOURED[target])
    names = data.draw(st.lists(st.sampled_from(honoured), unique=True, max_size=8))
    asked = {each: data.draw(ASKED[each], each) for each in names}
    try:
        read = read_settings(None, asked)
        check_settings(read, target)
    except UserError:
        return  # what is refused is not sent
    text = compiled(find_pipeline(name), Placement(target, read, data.draw(st.booleans())))
    assert violations(text, by_construction=True) == []
