"""Manifests of a JobSet against its schema, which refuses unknown fields."""

import contextlib
import functools
import os
import subprocess

import jsonschema
import pytest
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import detect_cluster
from orbax_bench_core.launchers import (
    LONGEST_NAME,
    job_name,
    place_settings,
)
from tests.support.kubernetes import JOBSET_SCHEMA, SECRET_SCHEMA, webhook_refusals

VALIDATOR = jsonschema.Draft202012Validator(JOBSET_SCHEMA)


TPUS = {"tpu": "v5e:4x8"}


@pytest.fixture
def made(make):
    return functools.partial(make, "jobset", more=["-v"])


def manifest(launcher):
    """Returns the JobSet that is shown, which must be valid."""
    jobset, secret = yaml.safe_load_all(launcher.shown())
    assert [error.message for error in VALIDATOR.iter_errors(jobset)] == []
    jsonschema.validate(secret, SECRET_SCHEMA)
    return jobset


def job(jobset):
    (replicated,) = jobset["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


def pod(jobset):
    return job(jobset)["template"]["spec"]


def container_of(jobset):
    (container,) = pod(jobset)["containers"]
    return container


def environment(jobset, *, labels, index):
    """Returns the variables of one container, as Kubernetes fills them in."""
    found = {"JOB_COMPLETION_INDEX": str(index)}
    for variable in container_of(jobset)["env"]:
        source = variable.get("valueFrom", {})
        path = source.get("fieldRef", {}).get("fieldPath", "")
        if path.startswith("metadata.labels["):
            found[variable["name"]] = labels[path.partition("'")[2].rpartition("'")[0]]
        elif "value" in variable:
            found[variable["name"]] = variable["value"]
    return found


@pytest.mark.parametrize(
    ("tpu", "hosts", "chips", "accelerator", "topology"),
    [
        ("v5e:4x8", 8, 4, "tpu-v5-lite-podslice", "4x8"),
        ("v6e:4x4", 4, 4, "tpu-v6e-slice", "4x4"),
        ("v7x:2x2x2", 2, 4, "tpu7x", "2x2x2"),
        ("v6e:2x4", 1, 8, "tpu-v6e-slice", "2x4"),
    ],
)
def test_a_slice_has_a_pod_for_each_host_on_the_nodes_of_its_topology(
    made, tpu, hosts, chips, accelerator, topology
):
    found = manifest(made(tpu=tpu))
    assert (job(found)["parallelism"], job(found)["completions"]) == (hosts, hosts)
    assert pod(found)["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": accelerator,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    (container,) = pod(found)["containers"]
    assert container["resources"]["limits"] == {"google.com/tpu": chips}
    assert {port["containerPort"] for port in container["ports"]} == {8471, 8431, 8463}


def test_each_pod_of_several_slices_knows_its_place_in_all(made):
    found = manifest(made(tpu="v5p:2x2x4", slices=2))
    assert found["spec"]["replicatedJobs"][0]["replicas"] == 2
    for slice_, index in ((0, 0), (0, 3), (1, 2)):
        labels = {
            "jobset.sigs.k8s.io/job-index": str(slice_),
            "jobset.sigs.k8s.io/restart-attempt": "0",
        }
        cluster = detect_cluster(environment(found, labels=labels, index=index))
        assert (cluster.rank, cluster.size) == (slice_ * 4 + index, 8)
        assert cluster.address == "ob-tiny-hosts-0-0.ob-tiny:8463"


def test_gpus_are_asked_for_by_number_and_by_the_label_of_gke(made):
    found = manifest(made("gpus=8", "gpu=nvidia-h100-80gb", hosts=2))
    (container,) = pod(found)["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert pod(found)["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert pod(found)["tolerations"][0]["key"] == "nvidia.com/gpu"


def test_a_lost_host_of_a_slice_restarts_all_and_a_preempted_one_does_not_count(made):
    found = manifest(made("restarts=2", tpu="v5e:4x8"))
    policy = found["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 2
    (rule,) = policy["rules"]
    assert rule["action"] == "RestartJobSetAndIgnoreMaxRestarts"
    assert (pod(found)["restartPolicy"], job(found)["backoffLimit"]) == ("Never", 0)
    (rule,) = job(found)["podFailurePolicy"]["rules"]
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_a_lost_host_without_tpus_comes_back_alone(made):
    found = manifest(made("restarts=2", hosts=4))
    assert found["spec"]["failurePolicy"] == {"maxRestarts": 0}
    assert (pod(found)["restartPolicy"], job(found)["backoffLimit"]) == ("OnFailure", 8)
    assert "podFailurePolicy" not in job(found), "Kubernetes takes it with Never alone"


def test_records_can_tell_of_node_and_restarts(made):
    (container,) = pod(manifest(made(hosts=2)))["containers"]
    paths = {
        variable["name"]: variable["valueFrom"].get("fieldRef", {}).get("fieldPath")
        for variable in container["env"]
        if "valueFrom" in variable
    }
    assert paths["ORBAX_BENCH_NODE"] == "spec.nodeName"
    label = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    assert paths["ORBAX_BENCH_RESTARTS"] == label


def test_every_setting_is_valid_where_it_belongs(made):
    found = manifest(
        made(
            "queue=tpus",
            "service_account=bench",
            "priority_class=high",
            "host_network=true",
            "port=9000",
            "volume=runs:/runs",
            "environment={XLA_FLAGS: --x}",
            "node_selector={pool: a}",
            "cpu=4",
            "memory=16Gi",
            "spot=true",
            "grace_s=60",
            hosts=2,
            directory="/runs/a",
        )
    )
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tpus"
    assert found["spec"]["suspend"] is True
    spec = pod(found)
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["nodeSelector"] == {"pool": "a", "cloud.google.com/gke-spot": "true"}
    assert spec["volumes"] == [{"name": "run", "persistentVolumeClaim": {"claimName": "runs"}}]
    (container,) = spec["containers"]
    assert container["volumeMounts"] == [{"name": "run", "mountPath": "/runs"}]
    assert container["resources"]["requests"] == {"cpu": "4", "memory": "16Gi"}
    assert {"name": "XLA_FLAGS", "value": "--x"} in container["env"]
    assert (spec["serviceAccountName"], spec["terminationGracePeriodSeconds"]) == ("bench", 60)


def test_hosts_read_the_suite_from_the_run_directory_or_from_their_image(made):
    (container,) = pod(manifest(made(hosts=2)))["containers"]
    sent = "gs://bucket/run/suite/tiny suite.yaml"
    assert container["command"] == ["orbax-bench", "run", sent, "-o", "gs://bucket/run", "-v"]
    (container,) = pod(manifest(made("suite_in_image=/suites/a.yaml", hosts=2)))["containers"]
    assert container["command"][2] == "/suites/a.yaml"


def test_hosts_are_who_launches_where_a_folder_of_this_machine_is_shared(made, tmp_path):
    run = str(tmp_path / "run")
    own = {"runAsUser": os.getuid(), "runAsGroup": os.getgid()}
    shared = (f"volume=runs:{tmp_path}",)
    assert pod(manifest(made(*shared, hosts=2, directory=run)))["securityContext"] == own
    given = pod(manifest(made(*shared, "run_as_user=7", "fs_group=8", hosts=2, directory=run)))
    more = {"runAsUser": 7, "fsGroup": 8, "fsGroupChangePolicy": "OnRootMismatch"}
    assert given["securityContext"] == own | more
    for others in (("volume=runs:/not-here",), ()):
        directory = "/not-here/run" if others else "gs://bucket/run"
        launcher = made(*others, "suite_in_image=/a.yaml", hosts=2, directory=directory)
        assert "securityContext" not in pod(manifest(launcher)), "the image says who"


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ([], {"image": "bench:latest"}, "--image NAME@sha256:DIGEST, got bench:latest"),
        ([], {"image": None}, "needs --image NAME@sha256:DIGEST. A tag"),
        ([], {"directory": "/tmp/run"}, "/tmp/run is a folder of this machine"),
        (["volume=runs:/runs"], {"directory": "/tmp/run"}, "put it below /runs"),
        ([], {"name": "a" * 27}, "would have 65 characters, and Kubernetes allows 63; take a name"),
        ([], {"name": "1a"}, "--name '1a': at most 40 lower case letters, digits and dashes"),
        (["gpus=8"], {"tpu": "v5e:4x8"}, "TPUs or GPUs"),
        (["port=8471"], {"tpu": "v5e:4x8"}, "a port of libtpu"),
    ],
)
def test_what_cannot_run_as_a_jobset_is_one_message(made, settings, changes, said):
    with pytest.raises(UserError) as caught:
        made(*settings, **changes)
    (problem,) = caught.value.problems
    assert said in str(problem)


@pytest.mark.parametrize(
    "hosts", [{"hosts": 1}, {"hosts": 2000}, {"tpu": "v5p:2x2x4", "slices": 900}]
)
def test_a_name_is_taken_if_and_only_if_the_webhook_takes_it(made, hosts):
    found = manifest(made(**hosts))
    for length in range(1, 41):
        name = "a" * length
        found["metadata"]["name"] = found["spec"]["network"]["subdomain"] = name
        refused = webhook_refusals(found)
        said = pytest.raises(UserError, match="take a name of at most 26")
        with said if refused else contextlib.nullcontext():
            made(name=name, **hosts)
    assert refused


def test_every_name_that_is_made_is_taken(made):
    for name in (job_name("run", "point"), job_name("run", stem="a-very-long-name-of-a-suite")):
        assert webhook_refusals(manifest(made(name=name, tpu="v5p:2x2x4", slices=900))) == []
        assert len(name) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("volume=runs", "expected CLAIM:/PATH"),
        ("gpu=nvidia-l4", "needs gpus=NUMBER"),
        ("environment={ORBAX_BENCH_TOKEN: a}", "can be read by anyone"),
        ("quue=a", "did you mean 'queue'"),
    ],
)
def test_a_wrong_setting_is_named(setting, said):
    with pytest.raises(UserError, match=said):
        place_settings("jobset", [setting])


def test_hosts_with_tpus_may_lock_memory_as_the_guide_of_gke_says(made):
    found = manifest(made(tpu="v5e:4x8"))
    assert container_of(found)["securityContext"] == {"capabilities": {"add": ["SYS_RESOURCE"]}}
    assert pod(found)["securityContext"] == {"runAsUser": 0}, "others do not get a capability"
    words = container_of(found)["command"]
    shell, command = words[:4], words[4:]
    assert shell[:2] == ["/bin/sh", "-c"]
    assert shell[2].startswith("ulimit -l 68719476736 ||")
    assert command[:2] == ["orbax-bench", "run"]
    # GKE's device plugin gives `/dev/vfio` to whoever asks for TPUs; no path of the node is needed.
    assert container_of(found)["resources"]["limits"]["google.com/tpu"]
    assert not [volume for volume in pod(found).get("volumes", ()) if "hostPath" in volume]


@pytest.mark.parametrize(
    ("settings", "launch", "context", "begins"),
    [
        (["privileged=true", "capabilities=[]"], TPUS, {"privileged": True}, "/bin/sh"),
        (["capabilities=[]"], TPUS, None, "orbax-bench"),
        (["gpus=8"], {"hosts": 2}, None, "orbax-bench"),
    ],
    ids=["privileged", "a cluster that gives no capabilities", "no TPUs"],
)
def test_hosts_are_given_what_was_asked_for(made, settings, launch, context, begins):
    found = manifest(made(*settings, **launch))
    assert container_of(found).get("securityContext") == context
    assert ("securityContext" in pod(found)) == (context is not None)
    assert container_of(found)["command"][0] == begins


@pytest.mark.parametrize("limit", ["68719476736", "1024"])
def test_the_command_runs_whether_or_not_the_limit_can_be_raised(made, limit):
    shell = container_of(manifest(made(tpu="v5e:4x8")))["command"][:4]
    shell[2] = shell[2].replace("68719476736", limit)
    done = subprocess.run(
        [*shell, "/bin/sh", "-c", 'ulimit -l; echo "$@"', "sh", "a b", "$HOME"],
        capture_output=True,
        text=True,
        check=True,
    )
    locked, words = done.stdout.splitlines()
    assert words == "a b $HOME"
    assert locked == limit or f"locked memory stays at {locked} KiB" in done.stderr


@pytest.mark.parametrize(
    ("launch", "alone"),
    [
        ({"tpu": "v5e:4x8"}, True),
        ({"tpu": "v5p:2x2x4", "slices": 2}, True),
        ({"tpu": "v6e:2x4"}, False),
        ({"hosts": 2}, False),
    ],
)
def test_a_slice_of_several_hosts_has_a_node_pool_of_its_own(made, launch, alone):
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    pool = manifest(made(**launch))["metadata"]["annotations"].get(key)
    assert pool == ("cloud.google.com/gke-nodepool" if alone else None)


def test_disks_and_reservations_are_asked_for(made):
    found = manifest(
        made(
            "ephemeral_storage=100Gi",
            "reservation=projects/other-team/reservations/tpus",
            tpu="v5e:4x8",
        )
    )
    resources = container_of(found)["resources"]
    assert resources["limits"] == {"google.com/tpu": 4, "ephemeral-storage": "100Gi"}
    assert resources["requests"]["ephemeral-storage"] == "100Gi"
    selectors = pod(found)["nodeSelector"]
    assert selectors["cloud.google.com/reservation-name"] == "tpus"
    assert selectors["cloud.google.com/reservation-project"] == "other-team"
    assert selectors["cloud.google.com/reservation-affinity"] == "specific"


@pytest.mark.parametrize("queue", ["dws", None])
def test_machines_of_flex_start_are_asked_for_with_their_time(made, queue):
    queued = () if queue is None else (f"queue={queue}",)
    found = manifest(made("flex_start=true", "max_run_s=3600", *queued, tpu="v5e:4x8"))
    selectors, annotations = pod(found)["nodeSelector"], found["metadata"]["annotations"]
    assert selectors["cloud.google.com/gke-flex-start"] == "true"
    taints = {toleration["key"] for toleration in pod(found)["tolerations"]}
    label = selectors.get("cloud.google.com/gke-max-run-duration-seconds")
    asked = annotations.get("provreq.kueue.x-k8s.io/maxRunDurationSeconds")
    assert "cloud.google.com/gke-flex-start" in taints
    assert (label, asked) == (("3600", None) if queue is None else (None, "3600"))
    assert ("cloud.google.com/gke-queued" in taints) is (queue is not None)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["spot=true", "flex_start=true"], "spot and flex_start exclude each other"),
        (["reservation=Not a name"], "a reservation is NAME, or projects/"),
        (["max_run_s=60"], "a setting of flex_start, or of a queue"),
        (["flex_start=true", "max_run_s=999999"], "604800 s at most, 7 days"),
        (["memory=lots"], "--set memory: expected bytes, a whole number such as 64Gi, got 'lots'"),
        (["memory=64K"], "--set memory: expected bytes"),
        (["namespace=a..b"], "--set namespace: expected a name of Kubernetes"),
        (["environment={É: c}"], "environment.É: expected the name of a variable"),
        (["cpu=-1"], "--set cpu: expected CPUs, such as 8 or 500m, got -1"),
        (["service_account=a b"], "--set service_account: expected a name of Kubernetes"),
        (["volume=a b:/runs"], "expected CLAIM:/PATH"),
        (["environment={a b: c}"], "environment.a b: expected the name of a variable"),
    ],
)
def test_what_no_cluster_takes_is_refused(settings, said):
    with pytest.raises(UserError, match=said):
        place_settings("jobset", settings)


def test_a_name_of_digits_stays_as_it_is():
    assert place_settings("jobset", ["queue=007"]).queue == "007"
