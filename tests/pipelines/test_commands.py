"""`orbax-bench pipeline`: what is refused and how, and what a dry run prints."""

import json
import subprocess
import sys

import pytest
import yaml

pytest.importorskip("kfp")

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets import Target, checks
from tests.pipelines import strict
from tests.pipelines.conftest import SUITE, sets

try:
    checks.require_extras(Target.VERTEX)
    has_vertex = True
except UserError:
    has_vertex = False
needs_vertex = pytest.mark.skipif(not has_vertex, reason="the extra `vertex` is not installed")

CLOUD = ("project=p-1", "location=us-central1")
ALL = (*CLOUD, "image=a/b:1")
VERTEX = ["--target", "vertex", *sets(*ALL)]
TWO_HOSTS = "v5e:2x4:ct5lp-hightpu-4t"
BY_DIGEST = "image=a/b@sha256:" + "0" * 64


def submit(suite, *more, output="gs://b/out"):
    return ["submit", suite, "-o", output, *more]


@pytest.mark.slow
def test_kfp_is_imported_when_a_pipeline_is_built():
    heavy = {"kfp", "google.protobuf", "jax", "docker", "kubernetes", "orbax"}
    rooms = ", ".join(
        f"orbax_bench_pipelines.{room}" for room in ("definitions", "preparing", "targets")
    )
    code = f"import sys, {rooms}\nprint(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_list_names_the_parameters(pipeline_command):
    done = pipeline_command("list")
    assert "sweep: Measures every point" in done.out
    assert "  measure_limits=true" in done.out


def test_a_dry_run_here_prints_the_parameters(pipeline_command, suite, tmp_path):
    done = pipeline_command(
        "run", suite, "-o", tmp_path / "out", "--dry-run", "--set", "measure_limits=false"
    )
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    assert printed["target"] == "local"
    assert printed["parameters"]["suite"] == SUITE
    assert printed["parameters"]["measure_limits"] is False
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_suite_is_refused_before_a_step_begins(
    pipeline_command, suite, make_run, make_record
):
    root = make_run([make_record()]).root
    done = pipeline_command("run", suite, "-o", root)
    assert (done.code, done.out) == (2, "")
    assert "holds a run of another suite" in done.err


@pytest.mark.parametrize("target", ["local", "docker", "vertex"])
def test_a_package_that_is_not_for_kubernetes_is_one_document(pipeline_command, target):
    done = pipeline_command("compile", "--target", target, "--output", "-")
    strict.pipeline_spec(yaml.safe_load(done.out))


@pytest.mark.slow
def test_a_package_is_written_and_gke_and_kfp_are_one_target(pipeline_command, tmp_path):
    for target in ("gke", "kfp"):
        package = tmp_path / f"{target}.yaml"
        done = pipeline_command("compile", "--target", target, *sets("tpu=v5e:2x4"), "-o", package)
        assert (done.code, done.out) == (0, f"Package: {package}\n")
    assert package.read_text() == (tmp_path / "gke.yaml").read_text()


@needs_vertex
@pytest.mark.parametrize(
    ("target", "settings", "expected"),
    [
        ("kfp", ["tpu=v5e:4x4"], "image: TPU v5e:4x4 is started by a launcher"),
        ("kfp", ["tpu=v5e:4x4", "image=a/b:1"], "give NAME@sha256:DIGEST, got a/b:1"),
        (
            "kfp",
            ["tpu=v5e:4x4", BY_DIGEST, "pvc=[{name: a, path: /a}, {name: b, path: /b}]"],
            "pvc: the hosts of TPU v5e:4x4 mount one claim only",
        ),
        (
            "kfp",
            ["tpu=v5e:2x4", "launcher_settings.queue=q"],
            "launcher_settings: no launcher starts hosts here",
        ),
        (
            "kfp",
            [f"tpu={TWO_HOSTS}", BY_DIGEST, "launcher_settings.port=8471"],
            "--on jobset --set port=8471: that is a port of libtpu",
        ),
        ("kfp", ["points_per_step=-1"], "--set points_per_step: expected a whole number, 0 or"),
        ("kfp", ["arms={}"], "--set arms: the pipeline sweep has no such parameter, but regress"),
        ("kfp", ["gpu=l4:4"], "gpu=l4:4 has 4 devices, but the suite has"),
        ("kfp", ["service_account=a@b.c"], "name of a Kubernetes service account"),
        ("kfp", ["pipeline_root=/tmp"], "expected gs://, s3:// or minio://"),
        ("kfp", ["labels.a b=c"], "labels: a b=c is not a Kubernetes label"),
        ("kfp", ["measure_limits=1"], "expected true or false, got '1'"),
        ("kfp", ["baseline=/mnt/b"], "baseline: /mnt/b is local to one machine"),
        ("local", [], "runs on this machine and nothing is submitted"),
        ("vertex", [*ALL, "tpu=v5e:2x4"], "image: TPU v5e:2x4 is started by a launcher"),
        ("vertex", [*ALL, BY_DIGEST, "tpu=v4:2x2x1"], "no custom jobs on TPU v4:2x2x1"),
        ("vertex", [*ALL, BY_DIGEST, "tpu=v5e:2x4", "cpu=8"], "the machines of a TPU slice say"),
        ("vertex", [*ALL, "labels.Team=ML"], "labels: Team=ML is not a label of Google Cloud"),
        ("vertex", [*ALL, "service_account=me"], "expected NAME@PROJECT.iam.gserviceaccount.com"),
        ("vertex", [*ALL, "experiment=My_Exp"], "experiment: expected lower case"),
        ("vertex", [*ALL, "tensorboard=7"], "tensorboard: belongs to an experiment"),
        ("vertex", [*CLOUD], "image: Vertex AI cannot pull 'orbax-bench:"),
        ("vertex", ["image=a/b:1"], "project: Vertex AI needs it"),
    ],
)
def test_what_cannot_work_is_refused(pipeline_command, suite, target, settings, expected):
    done = pipeline_command(*submit(suite, "--target", target, *sets(*settings), "--dry-run"))
    assert done.code == 2
    assert expected in done.err
    assert done.out == ""


@needs_vertex
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--target", "kfp", "--cron", "0 25 * * *"], "hour '25'; expected 0-23"),
        (["--target", "kfp", "--cron", "daily"], "expected five fields"),
        (
            ["--target", "kfp", "--cron", "0 3 * * *", "--time-zone", "Asia/Tokyo"],
            "cannot be honoured",
        ),
        (
            [*VERTEX, "--cron", "0 3 * * *", "--time-zone", "Asia/Tokio"],
            "did you mean 'Asia/Tokyo'",
        ),
        ([*VERTEX, "--cron", "0 3 * * *", "--set", "experiment=e"], "not the runs of a schedule"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused(pipeline_command, suite, arguments, expected):
    done = pipeline_command("schedule", suite, "-o", "gs://b/out", *arguments, "--dry-run")
    assert done.code == 2
    assert expected in done.err


def test_gpus_of_one_machine_are_refused_to_several_processes(pipeline_command, suite):
    suite.write_text(SUITE + "execution: {processes: 2}\n")
    done = pipeline_command(*submit(suite, "--target", "kfp", "--set", "gpu=l4:8", "--dry-run"))
    assert done.code == 2
    assert "gpu=l4:8: a step is one machine, whose GPUs belong to one process" in done.err
    assert "give gpu_hosts=2" in done.err


def test_a_local_output_directory_needs_a_claim_on_a_cluster(pipeline_command, suite):
    done = pipeline_command(*submit(suite, "--target", "kfp", output="/mnt/bench/out"))
    assert done.code == 2
    assert "/mnt/bench/out is local to one machine, and each step runs on another" in done.err
    assert "mount a claim by the setting pvc" in done.err


def test_an_image_that_only_this_machine_has_is_noted(pipeline_command, suite):
    done = pipeline_command(*submit(suite, "--target", "kfp", "--dry-run"))
    assert "note: the nodes of the cluster must have the image 'orbax-bench:" in done.err


def test_a_compiled_pipeline_is_no_suite(pipeline_command, tmp_path):
    package = tmp_path / "package.yaml"
    pipeline_command("compile", "--target", "gke", "-o", package)
    done = pipeline_command(*submit(package, "--target", "kfp", "--dry-run"))
    assert done.code == 2
    what = "a compiled pipeline or component"
    assert done.err == f"error: {package}: this is {what}, not a suite; give the suite file\n"


def test_a_suite_with_a_value_that_yaml_cannot_read_is_refused(pipeline_command, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite_name: s\nnum_repeats: 2026-99-99\n")
    done = pipeline_command(*submit(suite, "--target", "kfp", "--dry-run"))
    assert done.code == 2
    assert f"{suite}:2: num_repeats: '2026-99-99' cannot be read as a YAML timestamp" in done.err


@pytest.mark.parametrize(
    ("missing", "target", "extra"),
    [
        ("kfp", "kfp", "kfp"),
        ("google.cloud.aiplatform", "vertex", "vertex"),
        ("kfp", "local", "kfp"),
    ],
)
def test_a_missing_extra_is_named(pipeline_command, suite, monkeypatch, missing, target, extra):
    there = checks._is_there
    monkeypatch.setattr(checks, "_is_there", lambda name: name != missing and there(name))
    done = pipeline_command("run", suite, "-o", "gs://b/out", "--target", target, "--dry-run")
    assert done.code == 2
    assert f"needs {missing}: pip install 'orbax-bench[{extra}]'" in done.err


def test_a_package_says_which_settings_are_not_part_of_it(pipeline_command):
    given = sets("service_account=me@p.iam", "network=projects/1/global/networks/n")
    done = pipeline_command("compile", "--target", "vertex", "--output", "-", *given)
    assert done.code == 0
    said = "note: not part of a package, give it on submission: service_account, network\n"
    assert done.err == said


def test_a_package_needs_a_name_that_services_take(pipeline_command, tmp_path):
    done = pipeline_command("compile", "--target", "gke", "--output", tmp_path / "x.json")
    assert (done.code, "a package is a .yaml file" in done.err) == (2, True)
