"""Manifests of a Pathways job; the proxy itself cannot run on a test machine."""

import functools

import jsonschema
import pytest
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import detect_cluster
from tests.support.kubernetes import PATHWAYS_SCHEMA, Cluster, serving

IMAGE = f"registry.example/bench@sha256:{'a1' * 32}"


@pytest.fixture
def made(make):
    return functools.partial(make, "pathways", tpu="v5e:4x8")


def manifest(launcher):
    """Returns the PathwaysJob that is shown, which must be valid."""
    found = yaml.safe_load(launcher.shown())
    validator = jsonschema.Draft202012Validator(PATHWAYS_SCHEMA)
    assert [error.message for error in validator.iter_errors(found)] == []
    return found


def container(found):
    (only,) = found["spec"]["controller"]["template"]["spec"]["containers"]
    return only


def test_one_process_drives_the_slices(made):
    found = manifest(made(slices=2))
    (workers,) = found["spec"]["workers"]
    assert workers == {"type": "ct5lp-hightpu-4t", "topology": "4x8", "numSlices": 2}
    assert found["spec"]["pathwaysDir"] == "gs://bucket/run/pathways"
    assert found["spec"]["controller"]["mainContainerName"] == container(found)["name"]
    assert container(found)["command"][:3] == [
        "orbax-bench",
        "run",
        "gs://bucket/run/suite/tiny suite.yaml",
    ]


def test_the_process_finds_the_proxy_and_looks_for_no_other_hosts(made):
    variables = container(manifest(made("environment={A: b}")))["env"]
    plain = {each["name"]: each["value"] for each in variables if "value" in each}
    assert plain["JAX_PLATFORMS"] == "proxy"
    assert plain["JAX_BACKEND_TARGET"] == "grpc://$(PATHWAYS_HEAD):29000"
    assert plain["PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS"] == "600"
    assert plain["A"] == "b"
    names = [each["name"] for each in variables]
    assert names.index("PATHWAYS_HEAD") < names.index("JAX_BACKEND_TARGET"), "what is named first"
    tpu = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "a,b"}
    assert detect_cluster(plain | tpu) is None


def test_the_process_has_no_tpus_and_asks_for_no_rights(made):
    """Its workers have them, in pods that the controller of Pathways makes."""
    found = manifest(made())
    template = found["spec"]["controller"]["template"]["spec"]
    assert "securityContext" not in template | container(found)
    assert container(found)["command"][0] == "orbax-bench", "no shell that raises a limit"
    assert "vfio" not in str(found) and "google.com/tpu" not in str(found)
    given = manifest(made("privileged=true", "run_as_user=10001"))
    assert container(given)["securityContext"] == {"privileged": True}
    rights = given["spec"]["controller"]["template"]["spec"]["securityContext"]
    assert rights == {"runAsUser": 10001}


def test_every_setting_is_valid_where_it_belongs(made):
    found = manifest(
        made(
            f"sidecar_image={IMAGE}",
            "pathways_version=jax-0.10.2",
            "pathways_dir=gs://bucket/pw",
            "queue=tpus",
            "service_account=bench",
            "priority_class=high",
            "volume=runs:/runs",
            "cpu=16",
            "memory=64Gi",
            directory="/runs/a",
        )
    )
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tpus"
    (sidecar,) = found["spec"]["customComponents"]
    assert sidecar == {"componentType": "colocated_python_sidecar", "image": IMAGE}
    assert container(found)["resources"] == {"requests": {"cpu": "16", "memory": "64Gi"}}


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ([], {"tpu": None}, "needs --tpu"),
        ([], {"tpu": "v5e:1x1"}, "has no machines ct5lp-hightpu-1t"),
        ([], {"image": "bench:1"}, "NAME@sha256:DIGEST"),
        (["sidecar_image=a:1"], {}, "expected NAME@sha256:DIGEST"),
        (["pathways_dir=/tmp"], {}, "in a bucket only"),
        (["volume=runs:/runs"], {"directory": "/runs/a"}, "needs --set pathways_dir"),
        ([], {"name": "a" * 23}, "label of the coordinator .* would have 65 characters"),
    ],
)
def test_what_cannot_run_on_pathways_is_one_message(made, settings, changes, said):
    with pytest.raises(UserError, match=said):
        made(*settings, **changes)


@pytest.mark.slow
def test_a_pathways_job_is_created_followed_and_deleted(made, tmp_path, monkeypatch, capfd):
    pytest.importorskip("kubernetes", reason="needs the extra `kubernetes`")

    def completed(cluster):
        cluster.pod(
            "ob-tiny-pathways-head-0-0-x",
            role="pathways-head",
            container="main",
            terminated={"exitCode": 0},
        )
        cluster.status(terminalState="Complete")

    cluster = Cluster(
        kind="pathwaysjobs", group="pathways-job.pathways.domain/v1", schema=PATHWAYS_SCHEMA
    )
    cluster.script = [completed]
    cluster.logs["ob-tiny-pathways-head-0-0-x", False] = ["2026-01-02T03:04:05Z 32 devices"]
    (tmp_path / "volume").mkdir()
    volume = f"volume=runs:{tmp_path}/volume"
    with serving(cluster, tmp_path) as file:
        settings = (volume, "pathways_dir=gs://b/pw", f"kubeconfig={file}")
        assert made(*settings, directory=f"{tmp_path}/volume/run").start() == 0
    assert capfd.readouterr().out == "32 devices\n"
    assert cluster.deleted == ["pathwaysjobs/ob-tiny"]
