"""The image, really built, and the sweep and regression pipelines in containers of it.

Nothing comes from a container registry: the base image is a Debian that is unpacked here.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.processes import plain_environment, run_cli

pytest.importorskip("kfp")
pytest.importorskip("docker", reason="run `make setup`: the package docker is missing")

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]

USER = "12345:0"
"""A user that the image does not know, as Kubernetes may choose one."""

SUITE = """
suite_name: small
num_repeats: 2
execution: {warmups: 1}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""

LISTING = """
import importlib.metadata, json, re
from packaging.requirements import Requirement
def canonical(name): return re.sub(r"[-_.]+", "-", name).lower()
there = {canonical(d.name): d for d in importlib.metadata.distributions()}
needed, queue = set(), [("orbax-bench", one) for one in ("", "gcs", "kubernetes")]
while queue:
    name, extra = queue.pop()
    for line in (there[name].requires or []) if name in there else []:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
            continue
        for one in ("", *wanted.extras):
            if (found := (canonical(wanted.name), one)) not in needed:
                needed.add(found)
                queue.append(found)
print(json.dumps({"there": sorted(there), "needed": sorted({name for name, _ in needed})}))
"""


def docker(environment, *arguments):
    return subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, env=environment, check=False
    )


def pipeline_in_containers(environment, folder, run):
    return subprocess.run(
        [
            *(sys.executable, Path(__file__).with_name("run_pipeline.py")),
            *(folder / "suite.yaml", run, USER, folder / "log"),
        ],
        capture_output=True,
        text=True,
        env=plain_environment(environment),
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def inspected(docker_environment, image):
    return json.loads(docker(docker_environment, "image", "inspect", image).stdout)[0]


@pytest.fixture(scope="module")
def distributions(docker_environment, image):
    """Names of what is installed in the image, and of what our package needs."""
    done = docker(docker_environment, "run", "--rm", image, "python", "-c", LISTING)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ran(docker_environment, image, tmp_path_factory):
    """What the pipeline said, and its run directory; the steps run as a user without a name."""
    folder = tmp_path_factory.mktemp("containers")
    (folder / "suite.yaml").write_text(SUITE)
    run = folder / "run"
    run.mkdir()
    run.chmod(0o777)
    environment = {**docker_environment, "ORBAX_BENCH_IMAGE": image}
    done = pipeline_in_containers(environment, folder, run)
    log = (folder / "log").read_text() if (folder / "log").exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + log
    return done.stdout, run


@pytest.fixture
def records(ran):
    _, run = ran
    return [json.loads(path.read_text()) for path in run.glob("records/**/host_0.json")]


def test_the_labels_say_what_it_was_built_from(inspected, base_image, built):
    labels = {
        name.removeprefix("org.opencontainers.image."): value
        for name, value in inspected["Config"]["Labels"].items()
    }
    # Whoever edits a file while these tests run makes it dirty; the commit is the same.
    assert labels["revision"].removesuffix("-dirty") in built.commits
    assert f"ORBAX_BENCH_REVISION={labels['revision']}" in inspected["Config"]["Env"]
    assert labels["base.name"] == base_image
    assert labels["base.digest"] == "unknown"  # it was made here, and no registry has it
    assert labels["source"] == "unknown" or labels["source"].startswith("https://")
    created = datetime.datetime.fromisoformat(labels["created"])
    assert abs(datetime.datetime.now(datetime.UTC) - created) < datetime.timedelta(hours=1)


def test_the_size_is_what_the_readme_says(inspected):
    [said] = re.findall(r"\*\*([\d.]+) GB\*\*", (ROOT / "images/README.md").read_text())
    assert inspected["Size"] / 1e9 == pytest.approx(float(said), rel=0.005)
    assert inspected["Size"] <= 930e6


def test_its_user_is_a_number_that_is_not_root(inspected):
    user, _, group = inspected["Config"]["User"].partition(":")
    assert int(user) > 0, "Kubernetes refuses a name under runAsNonRoot"
    assert group == "0"


ON_A_TPU = """
orbax-bench step plan-sweep /suite.yaml -o /tmp/run --result /tmp/points > /dev/null
orbax-bench step run-sweep-point @/tmp/points -o /tmp/run --expect tpu:v5e:8
echo "code $?"
ls /tmp/run/records 2> /dev/null | wc -l
"""


def test_the_image_for_cpus_measures_nothing_where_a_tpu_is_expected(
    docker_environment, image, tmp_path
):
    (tmp_path / "suite.yaml").write_text(SUITE)
    mount = f"{tmp_path}/suite.yaml:/suite.yaml:ro"
    done = docker(docker_environment, "run", "--rm", "--volume", mount, image, "sh", "-c", ON_A_TPU)
    assert "expected tpu:v5e:8, and JAX found" in done.stdout + done.stderr
    assert done.stdout.split()[-3:] == ["code", "2", "0"], done.stdout


def test_the_bill_of_materials_is_what_is_installed(docker_environment, image, distributions):
    done = docker(docker_environment, "run", "--rm", image, "cat", "/opt/orbax-bench/sbom.cdx.json")
    listed = {one["purl"].partition("@")[0] for one in json.loads(done.stdout)["components"]}
    assert {f"pkg:pypi/{name}" for name in distributions["there"]} <= listed
    assert "pkg:deb/debian/libc6" in listed


NIGHTLY = """
suite_name: nothing much
execution: {warmups: 0}
gate: {looks: [10, 20], margin: 4.0, min_effect_s: 1.0}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: true}}]
arms: {}
"""


def test_the_nightly_job_runs_as_it_is_shipped(docker_environment, image, tmp_path):
    manifest = (ROOT / "examples/ci/kubernetes-cronjob.yaml").read_text()
    pod = yaml.safe_load(manifest)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    (tmp_path / "suite.yaml").write_text(NIGHTLY)
    runs = tmp_path / "runs"
    runs.mkdir()
    runs.chmod(0o777)
    done = docker(
        docker_environment,
        *("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--env", "RUNS=/runs", "--env", "JOB=nightly-1"),
        *("--volume", f"{tmp_path / 'suite.yaml'}:/etc/orbax-bench/suite.yaml:ro"),
        *("--volume", f"{runs}:/runs", image, *container["command"]),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [night] = runs.glob("[!.]*")
    assert json.loads((night / "verdicts.json").read_text())["word"] == "PASS"
    assert {path.stat().st_uid for path in night.rglob("*.json")} == {10001}


def test_the_image_holds_what_components_need_and_kfp(distributions):
    expected = set(distributions["needed"]) | {"orbax-bench", "kfp"}
    assert set(distributions["there"]) - expected == set()


def test_what_no_step_uses_is_left_out(distributions):
    assert set(distributions["needed"]) - set(distributions["there"]) == {
        "markdown",
        "setuptools",
        "tensorboard-data-server",
        "werkzeug",
    }


def test_an_image_that_cannot_be_pulled_is_one_message(docker_environment):
    done = subprocess.run(
        [
            *(sys.executable, ROOT / "images/build.py", "--base-image", "localhost:1/none:1"),
        ],
        capture_output=True,
        text=True,
        env=docker_environment,
        check=False,
    )
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]  # after what buildx prints
    assert said.startswith("error: cannot pull the base image localhost:1/none:1: ")
    assert "images/base/make.sh" in said


def test_the_records_name_the_image_by_its_digest(records, inspected):
    images = {record["provenance"]["image"] for record in records}
    assert images == {f"orbax-bench:test@{inspected['Id']}"}
    base = inspected["Config"]["Labels"]["org.opencontainers.image.base.digest"]
    assert {record["provenance"]["base_image"] for record in records} == {base}


def test_the_run_was_in_containers(records):
    hosts = [record["provenance"]["host"] for record in records]
    assert os.uname().nodename not in {host["name"] for host in hosts}
    assert {host["node"] for host in hosts} == {os.uname().nodename}


@pytest.mark.parametrize("name", ["report.html", "report.md", "summary.csv"])
def test_the_reports_are_here(ran, name):
    _, run = ran
    assert (run / name).stat().st_size > 0


def test_the_results_belong_to_the_user_of_the_steps(ran):
    _, run = ran
    assert {path.stat().st_uid for path in run.glob("records/**/*.json")} == {12345}


def test_a_step_waits_for_a_run_outside(ran):
    said, _ = ran
    assert "is measuring on this machine" in said


STEADY = """
suite_name: steady
execution: {warmups: 0}
gate: {looks: [10, 20]}
benchmarks: [{generator: steady.Steady, options: {}}]
"""


@pytest.fixture
def in_containers(docker_environment, image, tmp_path):
    """Runs a pipeline from the command line, into `tmp_path / "run"`."""

    def run(suite, pipeline, *flags):
        (tmp_path / "suite.yaml").write_text(suite)
        return run_cli(
            *("pipeline", "run", tmp_path / "suite.yaml", "-o", tmp_path / "run"),
            *("--pipeline", pipeline, "--target", "docker", "--set", f"image={image}", *flags),
            environment=docker_environment,
            PYTHONPATH=str(ROOT / "tests" / "integration"),
        )

    return run


@pytest.mark.parametrize(
    ("arms", "code", "word"),
    [("{}", 0, "PASS"), ("{candidate: {options: {save_s: 0.06}}}", 3, "REGRESSION")],
    ids=["itself", "three times as slow"],
)
def test_a_regression_pipeline_in_containers(in_containers, arms, code, word, tmp_path):
    done = in_containers(STEADY, "regression", "--set", f"arms={arms}")
    assert done.returncode == code, done.stdout + done.stderr
    assert json.loads((tmp_path / "run" / "verdicts.json").read_text())["word"] == word
