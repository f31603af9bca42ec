"""Custom jobs of Vertex AI: what is sent, over the loopback interface, and what comes of it."""

import json
import os
import re
import signal
import types

import pytest
import yaml

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import make_launcher, noted_job, parse_slice
from orbax_bench_core.launchers import vertex as vertex_module
from orbax_bench_core.launchers.vertex import GPUS
from tests.launchers.fake_custom_jobs import FakeCustomJobs, parsed
from tests.support.damage import DAMAGE
from tests.support.processes import ROOT, interrupts, run_cli

pytestmark = pytest.mark.slow  # Google's client takes a second to import

IMAGE = "europe-docker.pkg.dev/p/r/orbax-bench@sha256:" + "0" * 64
SUITE = "gs://bucket/suite.yaml"
RUN = "gs://bucket/run"
GPU = (
    "machine_type=a3-highgpu-8g",
    "accelerator_type=NVIDIA_H100_80GB",
    "accelerator_count=8",
)
SUITE_TEXT = """
suite_name: tiny
checkpoint_config: {spec: {a: {dtype: float32, shape: [16, 2], sharding: [x, null]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 16}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture(autouse=True)
def google():
    """Google's client, which no process imports for its collection alone."""
    return pytest.importorskip("google.cloud.aiplatform_v1").types


def vertex(*pairs, endpoint=None, directory=RUN, **launch):
    given = ["project=p-1", "location=us-central1", *pairs]
    if endpoint is not None:
        given.append(f"endpoint={endpoint}")
    command = ("orbax-bench", "run", SUITE, "-o", directory)
    launch = {"name": "ob-tiny", "image": IMAGE, "command": command, **launch}
    return make_launcher("vertex", given, (), output_directory=directory, **launch)


def shown(*pairs, **launch):
    """Reads the job that a dry run prints, strictly."""
    return parsed(yaml.safe_load(vertex(*pairs, **launch).shown()))


def refused(*pairs, **launch):
    with pytest.raises(UserError) as error:
        vertex(*pairs, **launch)
    return str(error.value)


def test_gpus_are_one_pool_for_host_0_and_one_for_the_others(google):
    first, others = shown(*GPU, hosts=4).job_spec.worker_pool_specs
    assert (first.replica_count, others.replica_count) == (1, 3)
    assert first.machine_spec == others.machine_spec
    assert first.machine_spec.machine_type == "a3-highgpu-8g"
    assert first.machine_spec.accelerator_type == google.AcceleratorType.NVIDIA_H100_80GB
    assert first.machine_spec.accelerator_count == 8
    assert first.container_spec == others.container_spec
    assert first.container_spec.image_uri == IMAGE
    assert list(first.container_spec.command) == ["orbax-bench", "run", SUITE, "-o", RUN]


@pytest.mark.parametrize(
    ("tpu", "machine"),
    [
        ("v5e:4x4", "ct5lp-hightpu-4t"),
        ("v6e:2x4", "ct6e-standard-8t"),
        ("v5p:2x2x2", "ct5p-hightpu-4t"),
        ("v7x:2x2x2", "tpu7x-standard-4t"),
    ],
)
def test_a_slice_is_one_replica_and_the_page_says_from_where_its_machine_is_known(tpu, machine):
    shape = parse_slice(tpu)
    [pool] = shown(tpu=tpu).job_spec.worker_pool_specs
    assert pool.replica_count == 1
    assert pool.machine_spec.machine_type == machine
    assert pool.machine_spec.tpu_topology == shape.topology
    assert pool.machine_spec.accelerator_type == 0
    kind, family = tpu.partition(":")[0], machine.rpartition("-")[0]
    page = (ROOT / "docs/launch/vertex.md").read_text()
    assert re.search(rf"^\| {kind} \| `{family}-.*` \| \w.*\|$", page, re.M)


def test_machines_of_a_reservation_are_asked_for_by_its_name(google):
    name = "projects/p-1/zones/us-central1-a/reservations/tpus"
    [pool] = shown(f"reservation={name}", tpu="v6e:4x4").job_spec.worker_pool_specs
    affinity = pool.machine_spec.reservation_affinity
    specific = type(affinity.reservation_affinity_type).SPECIFIC_RESERVATION
    assert affinity.reservation_affinity_type == specific
    assert (affinity.key, list(affinity.values)) == (
        "compute.googleapis.com/reservation-name",
        [name],
    )
    assert "expected projects/PROJECT/zones/ZONE" in refused("reservation=tpus", tpu="v6e:4x4")


def test_nothing_is_started_again_by_vertex(google):
    scheduling = shown(*GPU, "strategy=SPOT", "timeout_s=7200").job_spec.scheduling
    assert scheduling.strategy == google.Scheduling.Strategy.SPOT
    assert scheduling.timeout.total_seconds() == 7200
    assert scheduling.disable_retries
    assert not scheduling.restart_job_on_worker_restart


def test_settings_reach_the_job():
    job = shown(
        *GPU,
        "strategy=FLEX_START",
        "max_wait_s=60",
        "service_account=me@p-1.iam.gserviceaccount.com",
        "network=projects/1/global/networks/n",
        "labels={team: ml}",
        "encryption_key=projects/p/locations/l/keyRings/r/cryptoKeys/k",
        "environment={XLA_FLAGS: --x}",
    )
    assert job.display_name == "ob-tiny"
    assert job.labels["team"] == "ml"
    assert job.job_spec.service_account == "me@p-1.iam.gserviceaccount.com"
    assert job.job_spec.network == "projects/1/global/networks/n"
    assert job.encryption_spec.kms_key_name == "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    [pool] = job.job_spec.worker_pool_specs
    assert {each.name: each.value for each in pool.container_spec.env}["XLA_FLAGS"] == "--x"
    assert job.job_spec.scheduling.max_wait_duration.total_seconds() == 60


def test_the_environment_has_the_image_and_the_number_of_hosts_and_no_token(monkeypatch):
    monkeypatch.setenv("ORBAX_BENCH_TOKEN", "t" * 64)
    job = shown(*GPU, hosts=4)
    variables = {
        each.name: each.value for each in job.job_spec.worker_pool_specs[0].container_spec.env
    }
    assert variables == {"ORBAX_BENCH_IMAGE": IMAGE, "ORBAX_BENCH_NUM_HOSTS": "4"}
    assert "t" * 64 not in vertex(*GPU, hosts=4).shown()


def test_known_gpus_are_those_of_the_api(google):
    api = {each.name for each in google.AcceleratorType}
    assert set(GPUS) <= api
    assert {name for name in api if name.startswith("NVIDIA_")} - set(GPUS) == {"NVIDIA_TESLA_K80"}


@pytest.mark.parametrize(
    ("pairs", "launch", "said"),
    [
        (
            GPU,
            {"directory": "/runs/a"},
            "the run directory /runs/a is a folder of this machine",
        ),
        (GPU, {"image": None}, "--on vertex needs --image NAME@sha256:DIGEST"),
        (GPU, {"image": "a/b:1"}, "NAME@sha256:DIGEST, got a/b:1"),
        ((), {}, "--set machine_type: needed without --tpu, such as n2-standard-16"),
        (GPU[:2], {}, "--set accelerator_type: goes with accelerator_count"),
        ((*GPU, "accelerator_type=NVIDIA_H100_80"), {}, "did you mean 'NVIDIA_H100_80GB'"),
        (GPU, {"tpu": "v5e:4x4"}, "TPU v5e:4x4 says it; leave it out"),
        ((), {"tpu": "v4:2x2x1"}, "no custom jobs on TPU v4:2x2x1"),
        ((), {"tpu": "v5e:4x4", "slices": 2}, "--slices 2: a custom job"),
        ((*GPU, "project="), {}, "--set project: Vertex AI needs it, such as my-project"),
    ],
)
def test_what_vertex_cannot_run_is_refused_before_anything_is_sent(
    monkeypatch, pairs, launch, said
):
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    assert said in refused(*pairs, **launch)


@pytest.fixture
def service():
    with FakeCustomJobs().serving() as server:
        yield server


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Pauses of a launcher, which take no time; a test may have something happen in one."""
    made = types.SimpleNamespace(seconds=[], does=lambda: None)

    def sleep(seconds):
        made.seconds.append(seconds)
        made.does()

    monkeypatch.setattr(vertex_module.time, "sleep", sleep)
    return made


def started(server, *pairs, **launch):
    """Starts a launch on the service."""
    return vertex(*(pairs or GPU), endpoint=server.url, **launch).start()


def of_method(server, method, end=""):
    return [each for each in server.received if each.method == method and each.path.endswith(end)]


def test_a_job_is_created_and_watched_to_its_end(service, capsys):
    assert started(service, hosts=2) == 0
    [body] = service.bodies("POST", "/customJobs")
    first, others = parsed(body).job_spec.worker_pool_specs
    assert (first.replica_count, others.replica_count) == (1, 1)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "projects/p-1/locations/us-central1/customJobs/1",
        "https://console.cloud.google.com/ai/platform/locations/us-central1/training/1?project=p-1",
        "ob-tiny: pending",
        "ob-tiny: running",
        "ob-tiny: succeeded",
    ]
    assert of_method(service, "POST", ":cancel") == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("The replica workerpool0-0 exited with a non-zero status of 3.", 3),
        ("The replica workerpool1-0 was preempted.", 1),
    ],
)
def test_a_job_that_failed_tells_the_exit_code_and_why(service, capsys, error, code):
    service.states, service.error = ["RUNNING", "FAILED"], error
    assert started(service) == code
    said = capsys.readouterr().out
    assert f"ob-tiny: failed\nob-tiny: {error}" in said
    assert (
        "gcloud ai custom-jobs stream-logs projects/p-1/locations/us-central1/customJobs/1" in said
    )
    assert of_method(service, "POST", ":cancel") == []


def test_a_job_that_somebody_cancelled_is_interrupted(service):
    service.states = ["RUNNING", "CANCELLED"]
    assert started(service) == 130


def test_a_refusal_is_one_message(service):
    service.troubles = {"POST job": [403]}
    with pytest.raises(
        UserError, match=r"Vertex AI in p-1, us-central1 refused: 403 .*trouble 403"
    ):
        started(service)
    assert service.jobs == {}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_fails_for_a_moment_is_tried_again(service, status):
    service.troubles = {"POST job": [status], "GET job": [status, status]}
    assert started(service) == 0
    assert len(service.jobs) == 1


def test_a_job_whose_answer_was_lost_is_not_created_again(service):
    service.troubles, service.lost = {"POST job": [500]}, True
    assert started(service) == 0
    assert len(service.jobs) == 1


def test_it_is_given_up_when_nothing_answers_for_minutes(service, monkeypatch, capsys):
    service.troubles = {"GET job": [503] * 3}
    monkeypatch.setattr(vertex_module, "_PATIENCE_S", 0)
    with pytest.raises(UserError, match="does not answer for 0 s: 503"):
        started(service)
    assert "could not be cancelled" in capsys.readouterr().out


def test_an_interruption_cancels_the_job(service, pauses):
    service.states = ["RUNNING"]
    pauses.does = lambda: os.kill(os.getpid(), signal.SIGINT)
    with interrupts(), pytest.raises(KeyboardInterrupt):
        started(service)
    assert len(of_method(service, "POST", ":cancel")) == 1


@pytest.fixture
def noted(service, pauses, tmp_path):
    """A file that notes job 1, which an earlier try of the step has created."""
    place = tmp_path / "outputs" / "gcp_resources"

    def gone():
        """Ends a step as a machine that is taken away does: whoever it started stays."""
        raise TimeoutError

    pauses.does = gone
    with pytest.raises(TimeoutError):
        started(service, noted=str(place))
    pauses.does = lambda: None
    return place


@pytest.fixture
def left_alone(service):
    """A service that takes no word of cancelling."""
    service.troubles = {"POST cancel": [403]}
    service.states = ["RUNNING"]


def test_a_job_is_noted_as_components_of_google_cloud_do_it(left_alone, service, noted):
    assert json.loads(noted.read_text()) == {
        "resources": [
            {
                "resourceType": "CustomJob",
                "resourceUri": "https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/"
                "locations/us-central1/customJobs/1",
            }
        ]
    }


def test_a_step_that_is_started_again_waits_for_the_job_that_is_there(left_alone, service, noted):
    service.states = ["RUNNING", "SUCCEEDED"]
    assert started(service, noted=str(noted)) == 0
    assert len(service.jobs) == 1


def test_a_step_that_is_started_again_after_its_job_has_ended_creates_another(
    left_alone, service, noted
):
    service.states = ["FAILED"]
    assert started(service, noted=str(noted)) == 1
    assert len(service.jobs) == 2
    assert noted_job(str(noted)).endswith("customJobs/2")


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_damaged_notes_no_job(tmp_path, damage):
    DAMAGE[damage](tmp_path / "gcp_resources")
    assert noted_job(str(tmp_path / "gcp_resources")) is None


def test_a_job_that_cannot_be_cancelled_is_told(service, pauses, capsys):
    service.states, service.troubles = ["RUNNING"], {"POST cancel": [403]}
    pauses.does = lambda: os.kill(os.getpid(), signal.SIGINT)
    with interrupts(), pytest.raises(KeyboardInterrupt):
        started(service)
    assert "could not be cancelled" in capsys.readouterr().out


@pytest.mark.slow
def test_a_dry_run_prints_the_job_and_sends_nothing(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.write_text(SUITE_TEXT)
    done = run_cli(
        *("launch", file, "-o", RUN, "--on", "vertex", "--tpu", "v5e:4x4", "--image", IMAGE),
        *("--dry-run", "--set", "project=p-1", "--set", "location=us-central1", "--"),
        "--no-limits",
    )
    assert done.returncode == 0, done.stderr
    [pool] = parsed(yaml.safe_load(done.stdout)).job_spec.worker_pool_specs
    assert pool.machine_spec.tpu_topology == "4x4"
    words = ["orbax-bench", "run", f"{RUN}/suite/tiny.yaml", "-o", RUN, "--no-limits"]
    assert list(pool.container_spec.command) == words
