"""Settings in compiled pipelines, read back with the protos of the services."""

import functools

import pytest
import yaml

pytest.importorskip("kfp")

from orbax_bench_core.launchers import place_settings
from orbax_bench_pipelines.targets import Target, check_settings, read_settings
from tests.pipelines import strict

DIGEST = "sha256:" + "0" * 64
MEASURE, BEGIN, JUDGE = "exec-run-sweep-point", "exec-begin-run", "exec-judge-run"


@functools.cache
def documents(target, text):
    """Returns what settings, as they are written in a file, make of the sweep."""
    given = yaml.safe_load(text)
    check_settings(read_settings(None, given), target)
    return strict.documents(target, **given)


def containers(target, text):
    spec = documents(target, text)[0]
    strict.pipeline_spec(spec)
    executors = spec["deploymentSpec"]["executors"]
    return {name: executor["container"] for name, executor in executors.items()}


def pods(text):
    return strict.platform_spec(documents(Target.KFP, text)[1])


def task(target, text, name):
    return dict(strict.tasks(documents(target, text)[0]))[name]


def measuring(target, text, name):
    """Returns an input of the step that measures, where it is written into the pipeline."""
    given = task(target, text, "run-sweep-point")["inputs"]["parameters"].get(name, {})
    return given.get("runtimeValue", {}).get("constant")


def expected(target, text):
    return measuring(target, text, "expect")


EVERYTHING = """
retries: 2
backoff_s: 30
timeout_s: 3600
environment: {LIBTPU_INIT_ARGS: --x}
secrets:
- {name: storage, key: key, variable: AWS_SECRET_ACCESS_KEY}
- {name: certificates, path: /etc/bench}
pull_secrets: [registry]
shared_memory: 16Gi
scratch: {path: /scratch, size: 200Gi, storage_class: premium-rwo}
node_affinity:
- {key: topology.kubernetes.io/zone, values: [a, b]}
- {key: pool, operator: NotIn, values: [shared], weight: 5}
spot: true
queue: bench
priority: low
annotations: {example.com/team: ml}
"""


def test_every_pod_gets_secrets_annotations_and_its_time():
    for config in pods(EVERYTHING).values():
        [variable] = config.secret_as_env
        [key] = variable.key_to_env
        assert (variable.secret_name, key.secret_key) == ("storage", "key")
        assert key.env_var == "AWS_SECRET_ACCESS_KEY"
        [folder] = config.secret_as_volume
        assert (folder.secret_name, folder.mount_path) == ("certificates", "/etc/bench")
        assert [each.secret_name for each in config.image_pull_secret] == ["registry"]
        assert dict(config.pod_metadata.annotations) == {"example.com/team": "ml"}
        assert config.active_deadline_seconds == 3600


def test_only_pods_that_measure_are_queued_and_have_volumes_of_their_own():
    configs = pods(EVERYTHING)
    measures = configs.pop(MEASURE)
    assert dict(measures.pod_metadata.labels) == {
        "kueue.x-k8s.io/queue-name": "bench",
        "kueue.x-k8s.io/priority-class": "low",
    }
    [memory] = measures.empty_dir_mounts
    assert (memory.mount_path, memory.medium, memory.size_limit) == ("/dev/shm", "Memory", "16Gi")
    [volume] = measures.generic_ephemeral_volume
    assert (volume.mount_path, volume.size) == ("/scratch", "200Gi")
    assert volume.storage_class_name == "premium-rwo"
    for config in configs.values():
        assert not config.empty_dir_mounts
        assert not config.generic_ephemeral_volume
        assert not config.pod_metadata.labels


def test_pods_that_measure_go_to_the_nodes_that_were_asked_for():
    config = pods(EVERYTHING)[MEASURE]
    assert dict(config.node_selector.labels) == {"cloud.google.com/gke-spot": "true"}
    [spot] = config.tolerations
    assert (spot.key, spot.value, spot.effect) == (
        "cloud.google.com/gke-spot",
        "true",
        "NoSchedule",
    )
    required, preferred = config.node_affinity
    [zone], [pool] = required.match_expressions, preferred.match_expressions
    assert (zone.key, zone.operator, list(zone.values)) == (
        "topology.kubernetes.io/zone",
        "In",
        ["a", "b"],
    )
    assert (pool.key, pool.operator, list(pool.values)) == ("pool", "NotIn", ["shared"])
    assert (required.weight, preferred.weight) == (0, 5)


def test_records_learn_the_node_below_their_pod():
    [node] = pods("{}")[MEASURE].field_path_as_env
    assert (node.name, node.field_path) == ("ORBAX_BENCH_NODE", "spec.nodeName")


@pytest.mark.parametrize("target", [Target.KFP, Target.VERTEX])
def test_every_step_is_tried_again_and_has_the_variables(target):
    text = "{retries: 2, backoff_s: 30, environment: {A: b}}"
    for name in ("run-sweep-point", "begin-run", "finish"):
        policy = task(target, text, name)["retryPolicy"]
        assert (policy["maxRetryCount"], policy["backoffDuration"]) == (2, "30s")
        assert policy["backoffFactor"] == 2.0
    for container in containers(target, text).values():
        assert {"name": "A", "value": "b"} in container["env"]


@pytest.mark.parametrize("target", [Target.LOCAL, Target.VERTEX])
def test_a_verdict_is_not_asked_for_again(target):
    assert "retryPolicy" not in task(target, "{retries: 2}", "judge-run")
    assert "retryPolicy" in task(target, "{retries: 2}", "run-sweep-point")


@pytest.mark.parametrize("target", [Target.KFP, Target.VERTEX])
@pytest.mark.parametrize(
    ("text", "times"),
    [("{}", 2), ("{retries: 0}", None), ("{steps: {run-sweep-point: {retries: 5}}}", 5)],
)
def test_a_step_that_measures_is_tried_again_unless_it_is_not_to_be(target, text, times):
    policy = task(target, text, "run-sweep-point").get("retryPolicy", {})
    assert policy.get("maxRetryCount") == times
    assert policy.get("backoffDuration") == ("60s" if times else None)
    assert "retryPolicy" not in task(target, text, "begin-run")


STEPS = f"""
image: a/tpu@{DIGEST}
retries: 1
cpu: "96"
steps:
  others: {{image: "a/cpu:1", memory: 2Gi}}
  judge-run: {{memory: 32Gi, cpu: "8"}}
  begin-run: {{image: "a/tpu@{DIGEST}", cpu: "16", retries: 3}}
"""


@pytest.mark.parametrize("target", [Target.KFP, Target.VERTEX])
def test_steps_have_images_and_machines_of_their_own(target):
    found = containers(target, STEPS)
    measuring, begun, judged = found[MEASURE], found[BEGIN], found[JUDGE]
    assert measuring["image"] == begun["image"] == f"a/tpu@{DIGEST}"
    assert judged["image"] == found["exec-finish"]["image"] == "a/cpu:1"
    assert measuring["resources"]["resourceCpuLimit"] == "96"
    assert "resourceMemoryLimit" not in measuring["resources"]
    assert judged["resources"]["resourceMemoryLimit"] == "32Gi"
    assert judged["resources"]["resourceCpuLimit"] == "8"
    assert begun["resources"]["resourceMemoryLimit"] == "2Gi"
    assert begun["resources"]["resourceCpuLimit"] == "16"
    assert task(target, STEPS, "begin-run")["retryPolicy"]["maxRetryCount"] == 3
    assert task(target, STEPS, "finish")["retryPolicy"]["maxRetryCount"] == 1


def test_a_step_knows_its_image_by_digest_or_not_at_all():
    found = containers(Target.KFP, STEPS)
    told = {"name": "ORBAX_BENCH_IMAGE", "value": f"a/tpu@{DIGEST}"}
    assert found[MEASURE]["env"] == [told]
    assert "env" not in found[JUDGE]


def test_gpus_on_kubeflow_are_a_resource_a_label_of_gke_and_a_toleration():
    text = "{gpu: 'h100-80gb:8'}"
    accelerator = containers(Target.KFP, text)[MEASURE]["resources"]["accelerator"]
    assert (accelerator["type"], accelerator["count"]) == ("nvidia.com/gpu", "8")
    config = pods(text)[MEASURE]
    assert dict(config.node_selector.labels) == {
        "cloud.google.com/gke-accelerator": "nvidia-h100-80gb"
    }
    assert [(each.key, each.operator) for each in config.tolerations] == [
        ("nvidia.com/gpu", "Exists")
    ]
    assert expected(Target.KFP, text) == "gpu:h100-80gb:8"


def test_gpus_on_vertex_are_type_and_count():
    text = "{gpu: 'l4:4', image: a/b:1}"
    found = containers(Target.VERTEX, text)
    accelerator = found[MEASURE]["resources"]["accelerator"]
    assert (accelerator["type"], accelerator["count"]) == ("NVIDIA_L4", "4")
    assert "resources" not in found[JUDGE]
    assert expected(Target.VERTEX, text) == "gpu:l4:4"


def test_a_step_that_measures_on_a_slice_expects_its_devices():
    assert expected(Target.KFP, "{tpu: ['v5e:2x4']}") == "tpu:v5e:8"
    assert expected(Target.KFP, "{tpu: ['v7x:2x2x1']}") == "tpu:v7x:8"


def test_the_hosts_of_a_jobset_are_queued_in_place_of_the_step_that_launches_them():
    text = f"{{tpu: ['v5e:4x8'], image: a/b@{DIGEST}, queue: q, spot: true, labels: {{team: ml}}}}"
    settings = measuring(Target.KFP, text, "launcher_settings")
    assert set(settings) == {"queue=q", "spot=true"}
    config = pods(text)[MEASURE]
    assert dict(config.pod_metadata.labels) == {"team": "ml"}
    assert not config.node_selector.labels
    assert not config.field_path_as_env


def test_the_hosts_of_a_custom_job_get_key_network_and_variables():
    text = f"""{{tpu: ['v6e:4x4'], image: a/b@{DIGEST}, project: p, location: l, spot: true,
        network: projects/1/global/networks/n, environment: {{A: b}},
        encryption_key: projects/p/locations/l/keyRings/r/cryptoKeys/k}}"""
    settings = measuring(Target.VERTEX, text, "launcher_settings")
    assert {
        "strategy=SPOT",
        'environment={"A": "b"}',
        "network=projects/1/global/networks/n",
        "encryption_key=projects/p/locations/l/keyRings/r/cryptoKeys/k",
    } <= set(settings)


def test_every_step_runs_as_the_user_that_was_given():
    for config in pods("security_context: {run_as_user: 10001, run_as_group: 7}").values():
        context = config.security_context
        assert (context.run_as_user, context.run_as_group) == (10001, 7)


def test_pods_that_measure_ask_for_reservations_and_flex_start():
    config = pods("reservation: tpus")[MEASURE]
    assert dict(config.node_selector.labels) == {
        "cloud.google.com/reservation-name": "tpus",
        "cloud.google.com/reservation-affinity": "specific",
    }
    config = pods("{flex_start: true, max_run_s: 3600, queue: dws}")[MEASURE]
    assert dict(config.node_selector.labels) == {"cloud.google.com/gke-flex-start": "true"}
    asked = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "3600"}
    assert dict(config.pod_metadata.annotations) == asked
    assert {toleration.key for toleration in config.tolerations} == {
        "cloud.google.com/gke-flex-start",
        "cloud.google.com/gke-queued",
    }


CAPABLE = f"""{{tpu: ['v5e:2x4'], image: a/b@{DIGEST}, ephemeral_storage: 9Gi, reservation: r,
    security_context: {{run_as_user: 0, capabilities: [SYS_RESOURCE]}}}}"""


def test_hosts_that_need_a_capability_are_started_by_a_launcher_also_on_one_machine():
    """Kubeflow drops the capabilities of its own steps."""
    assert measuring(Target.KFP, CAPABLE, "launcher") == "jobset"
    settings = measuring(Target.KFP, CAPABLE, "launcher_settings")
    assert set(settings) == {
        *("ephemeral_storage=9Gi", "reservation=r", "run_as_user=0"),
        'capabilities=["SYS_RESOURCE"]',
    }
    assert place_settings("jobset", settings).capabilities == ["SYS_RESOURCE"]


def test_a_custom_job_takes_reservation_flex_start_and_time():
    text = f"""{{tpu: ['v6e:4x4'], image: a/b@{DIGEST}, project: p, location: l,
        flex_start: true, max_run_s: 3600}}"""
    settings = measuring(Target.VERTEX, text, "launcher_settings")
    assert {"strategy=FLEX_START", "timeout_s=3600"} <= set(settings)
    name = "projects/p/zones/z/reservations/r"
    text = text.replace("flex_start: true", f"reservation: {name}")
    assert f"reservation={name}" in measuring(Target.VERTEX, text, "launcher_settings")
