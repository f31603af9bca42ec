"""Commands of XPK, on a machine without it; its own dry run accepts them."""

import functools
import shlex
import subprocess
import sys

import pytest
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import detect_cluster

IMAGE = f"registry.example/bench@sha256:{'a1' * 32}"
CLUSTER = ("cluster=c", "project=p", "zone=us-central2-b")
XPK = "xpk==1.16.0"


@pytest.fixture
def made(make):
    return functools.partial(make, "xpk", *CLUSTER, tpu="v6e:4x4")


def test_the_exact_commands_are_shown(made):
    sent, create, wait, delete = made("priority=high", slices=2).shown().splitlines()
    assert sent.startswith("# to ")
    assert create == (
        "xpk workload create --workload ob-tiny --cluster c --project p --zone us-central2-b "
        f"--tpu-type v6e-4x4 --num-slices 2 --docker-image {IMAGE} --max-restarts 0 "
        f"--priority high --env ORBAX_BENCH_IMAGE={IMAGE} "
        "--command 'orbax-bench run '\"'\"'gs://bucket/run/suite/tiny suite.yaml'"
        "\"'\"' -o gs://bucket/run'"
    )
    assert "--wait-for-job-completion ob-tiny" in wait
    assert delete.endswith("--workload ob-tiny --force")


def test_no_token_is_in_a_command(made):
    assert "TOKEN" not in made().shown()
    with pytest.raises(UserError, match="in a manifest can be read by anyone"):
        made("environment={ORBAX_BENCH_TOKEN: a}")


def test_hosts_with_gpus_know_their_place(made):
    create = made("device_type=h100-80gb-8", "environment={A: b c}", tpu=None, hosts=2).create
    assert create[create.index("--device-type") :][:4] == [
        "--device-type",
        "h100-80gb-8",
        "--num-nodes",
        "2",
    ]
    pairs = [create[at + 1] for at, word in enumerate(create) if word == "--env"]
    variables = dict(pair.split("=", 1) for pair in pairs) | {"JOB_COMPLETION_INDEX": "1"}
    assert variables["A"] == "b c"
    # XPK's own, which lack the rank.
    variables["JAX_COORDINATOR_ADDRESS"] = "$(JOBSET_NAME)-slice-job-0-0.$(JOBSET_NAME)"
    cluster = detect_cluster(variables)
    assert (cluster.rank, cluster.size, cluster.address) == (
        1,
        2,
        "ob-tiny-slice-job-0-0.ob-tiny:8463",
    )


def test_pathways_has_the_words_of_create_pathways(made):
    """As in xpk's `set_workload_create_pathways_parser`, and for a sidecar as Orbax's launcher."""
    create = made("enable_pathways=true", slices=2).create
    assert create[:4] == ["xpk", "workload", "create-pathways", "--workload"]
    given = create[create.index("--pathways-gcs-location") :]
    assert given[1] == "gs://bucket/run/pathways"
    assert "ORBAX_BENCH_CLUSTER=none" in create
    assert not [word for word in create if "sidecar" in word or "server-image" in word]
    all_set = ("pathways_dir=gs://b/p", "pathways_version=20260801", f"sidecar_image={IMAGE}")
    create = made("enable_pathways=true", *all_set).create
    images = "us-docker.pkg.dev/cloud-tpu-v2-images/pathways"
    at = create.index("--pathways-gcs-location")
    assert create[at : at + 9] == [
        *("--pathways-gcs-location", "gs://b/p"),
        *("--server-image", f"{images}/server:20260801"),
        *("--proxy-server-image", f"{images}/proxy_server:20260801"),
        *("--colocated-python-sidecar-image", IMAGE),
        "--custom-pathways-proxy-server-args=--sidecar_name=external",
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["sidecar_image=" + IMAGE], "sidecar_image: only with enable_pathways=true"),
        (["enable_pathways=true", "sidecar_image=a:1"], "expected NAME@sha256:DIGEST"),
        (["enable_pathways=true", "pathways_dir=/tmp/p"], "in a bucket only"),
    ],
)
def test_settings_of_pathways_that_do_not_fit_are_named(made, settings, said):
    with pytest.raises(UserError, match=said):
        made(*settings)


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ([], {"tpu": None}, "needs --tpu TYPE:TOPOLOGY, or"),
        (
            ["enable_pathways=true", "device_type=l4-1"],
            {"tpu": None},
            "enable_pathways needs --tpu",
        ),
        (["device_type=l4-1"], {}, "needs --tpu TYPE:TOPOLOGY, or"),
        ([], {"tpu": "v6e:2x4"}, "give --tpu v6e:2x4:ct6e-standard-4t"),
        ([], {"tpu": "v5e:2x2"}, "no slices of v5e with one host"),
        ([], {"output_directory": "/tmp/run"}, "use gs://BUCKET/FOLDER"),
        ([], {"image": "bench:1"}, "NAME@sha256:DIGEST"),
    ],
)
def test_what_xpk_cannot_start_is_one_message(made, settings, changes, said):
    with pytest.raises(UserError, match=said):
        made(*settings, **changes)


@pytest.fixture
def fake_xpk(tmp_path, monkeypatch):
    """Puts a program on the path that notes how it is called, and waits with code 125."""
    program = tmp_path / "bin" / "xpk"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$2" >> "{tmp_path}/calls"\n[ "$2" != list ] || exit 125\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path / "calls"


@pytest.mark.parametrize(
    ("settings", "called"),
    [([], ["create", "list", "delete"]), (["keep=true"], ["create", "list"])],
)
def test_a_workload_is_created_waited_for_and_deleted(made, fake_xpk, settings, called):
    launcher = made("suite_in_image=/suites/a.yaml", *settings)
    assert launcher.start() == 125
    assert fake_xpk.read_text().split() == called


@pytest.mark.nightly
@pytest.mark.extended
def test_xpks_own_dry_run_accepts_the_command(made, tmp_path):
    """XPK in an environment of its own, without gcloud, kubectl, or a network but for pip."""
    python = tmp_path / "xpk" / "bin" / "python"
    for words in (
        [sys.executable, "-m", "venv", str(tmp_path / "xpk")],
        [str(python), "-m", "pip", "install", "--quiet", XPK],
    ):
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
        if done.returncode:
            pytest.skip(f"{shlex.join(words)} failed: {done.stderr[-300:]}")
    for launcher, nodes, chips in (
        (made(slices=2), 4, "google.com/tpu: 4"),
        (made(tpu="v5e:4x8"), 8, "google.com/tpu: 4"),
        (made(tpu="v4:2x2x4"), 4, "google.com/tpu: 4"),
        (made(tpu="v5p:4x4x8"), 32, "google.com/tpu: 4"),
        (made(tpu="v7x:2x2x2"), 2, "google.com/tpu: 4"),
        (made("device_type=h100-mega-80gb-8", tpu=None, hosts=2), 2, "nvidia.com/gpu: 8"),
        (made("enable_pathways=true", f"sidecar_image={IMAGE}", slices=2), 4, "google.com/tpu:"),
    ):
        shown = _dry_run(python.with_name("xpk"), launcher.create)
        manifest = shown[shown.index("apiVersion") : shown.index("[XPK] Task: `Creating")]
        jobset = yaml.safe_load(manifest)
        head, *workers = jobset["spec"]["replicatedJobs"]
        spec = (workers or [head])[0]["template"]["spec"]
        assert spec["completions"] == nodes
        container = head["template"]["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == IMAGE
        assert chips in manifest
        assert shlex.join(launcher._shipment.command) in container["command"][2]


def _dry_run(xpk, words):
    command = [str(xpk), *words[1:], "--dry-run", "--skip-validation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
