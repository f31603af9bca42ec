"""Requests to Vertex AI, over the loopback interface."""

import json
import os
import re
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("kfp")
pytest.importorskip("google.cloud.aiplatform")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.cloud import aiplatform
from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format

from orbax_bench_core import engine as finishing
from orbax_bench_core.engine import RunEnding
from tests.pipelines import fakes, strict
from tests.pipelines.conftest import sets
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.processes import run_cli
from tests.support.webhook import webhook  # noqa: F401 - fixture

pytestmark = pytest.mark.slow

ARMS = "arms: {baseline: {options: {use_ocdbt: true}}, candidate: {options: {use_ocdbt: false}}}"
CLOSED = SimpleNamespace(url="https://127.0.0.1:9")  # where nothing listens
SCHEDULE = ["--cron", "0 3 * * *", "--time-zone", "Europe/Berlin"]


@pytest.fixture
def vertex(monkeypatch):
    with fakes.FakeVertex().serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        yield server


def arguments(command, suite, server, *more):
    settings = sets(
        *("image=a/b:1", "pipeline_root=gs://b/root", "labels.team=ml"),
        "service_account=me@p-1.iam.gserviceaccount.com",
    )
    return [command, suite, "-o", "gs://b/out", *target(server), *settings, *more]


def target(server):
    settings = sets(f"endpoint={server.url}", "project=p-1", "location=us-central1")
    return ["--target", "vertex", *settings]


def parsed(body, kind):
    """Parses a body into the API's own proto; unknown fields are errors."""
    return kind(json_format.ParseDict(body, kind()._pb, ignore_unknown_fields=False))


def check_job(job):
    strict.pipeline_spec(json_format.MessageToDict(job._pb.pipeline_spec))
    assert job.service_account == "me@p-1.iam.gserviceaccount.com"
    assert dict(job.labels) == {"team": "ml"}
    assert job.runtime_config.gcs_output_directory == "gs://b/root"
    assert job.runtime_config.parameter_values["output_directory"] == "gs://b/out"


def test_the_body_of_a_run_is_read_back_strictly(vertex, pipeline_command, suite):
    done = pipeline_command(*arguments("submit", suite, vertex))
    assert done.code == 0, done.err
    [body] = vertex.bodies("POST", "/pipelineJobs")
    job = parsed(body, types.PipelineJob)
    check_job(job)
    assert job.display_name == "sweep-small-suite"
    executors = body["pipelineSpec"]["deploymentSpec"]["executors"]
    assert executors["exec-run-sweep-point"]["container"]["image"] == "a/b:1"
    assert "Run: projects/p-1/locations/us-central1/pipelineJobs/orbax-bench-sweep-" in done.out


def storage_writes(server):
    return [
        (each.method, each.path)
        for each in server.received
        if each.path.startswith("/storage/") and each.method != "GET"
    ]


@pytest.mark.parametrize(("command", "more"), [("run", []), ("submit", []), ("schedule", SCHEDULE)])
def test_a_missing_bucket_is_told_and_made_only_when_asked(
    vertex, pipeline_command, suite, command, more
):
    vertex.buckets.clear()
    done = pipeline_command(*arguments(command, suite, vertex, *more))
    assert (done.code, storage_writes(vertex)) == (1, [])
    assert vertex.bodies("POST", "/(pipelineJobs|schedules)") == []
    assert "the bucket of pipeline_root=gs://b/root does not exist" in done.err
    assert "roles/storage.objectViewer for me@p-1.iam.gserviceaccount.com" in done.err
    done = pipeline_command(*arguments(command, suite, vertex, *more, "--create"))
    assert done.code == 0, done.err
    assert "created gs://b in p-1, us-central1" in done.out + done.err
    assert storage_writes(vertex) == [("POST", "/storage/v1/b"), ("PUT", "/storage/v1/b/b/iam")]
    assert len(vertex.bodies("POST", "/(pipelineJobs|schedules)")) == 1


@pytest.mark.parametrize(("command", "more"), [("submit", []), ("schedule", SCHEDULE)])
def test_without_a_root_artifacts_lie_below_the_output_directory(
    vertex, pipeline_command, suite, command, more
):
    words = arguments(command, suite, vertex, *more)
    at = words.index("pipeline_root=gs://b/root")
    done = pipeline_command(*words[: at - 1], *words[at + 1 :])
    assert done.code == 0, done.err
    [body] = vertex.bodies("POST", "/(pipelineJobs|schedules)")
    job = body if command == "submit" else body["createPipelineJobRequest"]["pipelineJob"]
    assert job["runtimeConfig"]["gcsOutputDirectory"] == "gs://b/out/pipeline_root"


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize("command", ["submit", "schedule", "pause"])
def test_where_nothing_answers_one_message_says_so(
    pipeline_command, suite, monkeypatch, command, silent
):
    from orbax_bench_pipelines.targets import job

    monkeypatch.setattr(job, "ANSWER_S", 1.0)
    with fakes.silent_address() as address:
        server = SimpleNamespace(url=address if silent else "http://127.0.0.1:9")
        given = arguments(command, suite, server, *(SCHEDULE if command == "schedule" else []))
        if command == "pause":
            given = ["pause", "mine", *target(server)]
        done = pipeline_command(*given)
    assert (done.code, done.out) == (1, "")
    [said] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert f"Vertex AI in p-1, us-central1, at {server.url}" in said
    assert ("has not answered within" if silent else "Connection refused") in said


@pytest.mark.parametrize(
    ("answer", "said"),
    [(fakes.UNWELL, "answered 503 Service Unavailable"), (fakes.SIGN_IN, "a page for signing in")],
)
def test_what_is_not_well_or_another_service_is_one_message(
    pipeline_command, suite, monkeypatch, answer, said
):
    server = fakes.FakeVertex()
    theirs = server.answer
    server.answer = lambda got: theirs(got) if got.path.startswith("/storage/") else answer
    with server.serving():
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        done = pipeline_command(*arguments("submit", suite, server))
    assert (done.code, done.out) == (1, "")
    [line] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert said in line


def test_a_bucket_that_nobody_tells_of_is_one_message(vertex, pipeline_command, suite, monkeypatch):
    from orbax_bench_pipelines.targets import vertex as target

    monkeypatch.setattr(target, "ANSWER_S", 1.0)
    with fakes.silent_address() as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        done = pipeline_command(*arguments("submit", suite, vertex))
    assert (done.code, done.out) == (1, "")
    assert "Read timed out" in done.err


@pytest.fixture
def silent_tokens(tmp_path, monkeypatch):
    """Has a service account whose token service takes connections and says nothing."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with fakes.silent_address() as address:
        account = {"type": "service_account", "client_email": "me@p-1", "private_key": pem}
        file = tmp_path / "key.json"
        file.write_text(json.dumps({**account, "token_uri": f"{address}/token"}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        yield


@pytest.mark.parametrize("command", ["submit", "schedule", "pause"])
def test_a_token_service_that_says_nothing_ends_a_submission(
    pipeline_command, suite, silent_tokens, monkeypatch, command
):
    from orbax_bench_pipelines.targets import job

    monkeypatch.setattr(job, "ANSWER_S", 1.0)
    given = arguments(command, suite, CLOSED, *(SCHEDULE if command == "schedule" else []))
    done = pipeline_command(*(["pause", "mine", *target(CLOSED)] if command == "pause" else given))
    assert done.code == 1
    [said] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert "token service for Vertex AI in p-1, us-central1 has not answered within 1 s" in said


def test_nor_does_it_keep_a_command_that_looks_into_a_bucket(suite, silent_tokens):
    # In a process of its own, for a thread waits on: by itself for two minutes.
    words = arguments("submit", suite, CLOSED, "--settings", "gs://b/settings.yaml")
    began = time.monotonic()
    done = run_cli("pipeline", *words, environment=dict(os.environ))
    assert (done.returncode, time.monotonic() - began < 60) == (2, True)
    assert "cannot read the settings file: it has not answered within 8 s" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "more", "path", "kind"),
    [
        ("submit", [], "pipelineJobs", types.PipelineJob),
        ("schedule", SCHEDULE, "schedules", types.Schedule),
    ],
)
def test_a_dry_run_prints_what_is_sent(vertex, pipeline_command, suite, command, more, path, kind):
    printed = pipeline_command(*arguments(command, suite, vertex, *more, "--dry-run"))
    assert vertex.received == []
    pipeline_command(*arguments(command, suite, vertex, *more))
    [request] = json.loads(printed.out)
    [sent] = vertex.bodies("POST", f"/{path}")
    assert f"{vertex.url}/v1/projects/p-1/locations/us-central1/{path}" in request["url"]
    assert parsed(request["body"], kind) == parsed(sent, kind)


def test_a_schedule_is_read_back_strictly(vertex, pipeline_command, suite):
    done = pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    assert done.code == 0, done.err
    [body] = vertex.bodies("POST", "/schedules")
    schedule = parsed(body, types.Schedule)
    assert schedule.cron == "TZ=Europe/Berlin 0 3 * * *"
    assert schedule.max_concurrent_run_count == 1
    check_job(schedule.create_pipeline_job_request.pipeline_job)


def test_scheduling_again_changes_the_schedule_of_that_name(vertex, pipeline_command, suite):
    pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    changed = ["--cron", "0 5 * * *", "--set", "measure_limits=false"]
    done = pipeline_command(*arguments("schedule", suite, vertex, *changed))
    assert "Schedule updated: sweep-small-suite" in done.out
    [schedule] = vertex.schedules.values()
    assert schedule["cron"] == "TZ=UTC 0 5 * * *"
    [update] = [each for each in vertex.received if each.method == "PATCH"]
    assert "createPipelineJobRequest" in update.query["updateMask"]
    job = parsed(update.body, types.Schedule).create_pipeline_job_request.pipeline_job
    check_job(job)
    assert job.runtime_config.parameter_values["measure_limits"] is False


def active_job(server, state=3):
    name = f"{server.parent}/pipelineJobs/nightly-1"
    server.jobs[name] = {"name": name, "state": state, "runtimeConfig": {}}


def test_an_active_run_of_a_schedule_that_changes_goes_on(vertex, pipeline_command, suite):
    pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    active_job(vertex)
    done = pipeline_command(*arguments("schedule", suite, vertex, "--cron", "0 5 * * *"))
    assert done.code == 0, done.err
    assert "1 run of it still active, as it was before: nightly-1" in done.out
    sent = {(each.method, each.path.rpartition(":")[2]) for each in vertex.received}
    assert not {word for _, word in sent} & {"cancel", "batchCancel", "pause"}


def test_with_wait_a_schedule_is_paused_until_none_is_active(
    vertex, pipeline_command, suite, monkeypatch
):
    from orbax_bench_pipelines.targets import job

    pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    active_job(vertex)
    [schedule] = vertex.schedules.values()
    seen = []

    def ends(_):
        seen.append((schedule["state"], schedule["cron"]))
        vertex.jobs.clear()

    monkeypatch.setattr(job.time, "sleep", ends)
    changed = ["--cron", "0 5 * * *", "--wait"]
    done = pipeline_command(*arguments("schedule", suite, vertex, *changed))
    assert done.code == 0, done.err
    assert seen == [(2, "TZ=Europe/Berlin 0 3 * * *")]
    [schedule] = vertex.schedules.values()
    assert (schedule["state"], schedule["cron"]) == (1, "TZ=UTC 0 5 * * *")
    assert "note: waiting for nightly-1 to end" in done.err


def test_a_schedule_is_paused_stays_so_when_it_changes_and_resumes(vertex, pipeline_command, suite):
    pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    where = ["sweep-small-suite", *target(vertex)]
    assert pipeline_command("pause", *where).out.startswith("paused: sweep-small-suite projects/")
    done = pipeline_command(*arguments("schedule", suite, vertex, *SCHEDULE))
    assert "it is paused; orbax-bench pipeline resume sweep-small-suite" in done.out
    [schedule] = vertex.schedules.values()
    assert schedule["state"] == types.Schedule.State.PAUSED
    assert pipeline_command("resume", *where).code == 0
    [schedule] = vertex.schedules.values()
    assert schedule["state"] == types.Schedule.State.ACTIVE
    [resumed] = vertex.bodies("POST", ":resume")
    assert not resumed.get("catchUp")


def test_network_and_key_are_those_of_run_and_schedule(vertex, pipeline_command, suite):
    network = "projects/7/global/networks/bench"
    key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    given = sets(f"network={network}", f"encryption_key={key}")
    for command, more in (("submit", []), ("schedule", SCHEDULE)):
        done = pipeline_command(*arguments(command, suite, vertex, *more, *given))
        assert done.code == 0, done.err
    [run] = vertex.bodies("POST", "/pipelineJobs")
    [schedule] = vertex.bodies("POST", "/schedules")
    asked = parsed(schedule, types.Schedule).create_pipeline_job_request.pipeline_job
    for job in (parsed(run, types.PipelineJob), asked):
        assert (job.network, job.encryption_spec.kms_key_name) == (network, key)


@pytest.mark.parametrize("with_board", [False, True])
def test_a_dry_run_prints_what_is_sent_for_an_experiment(
    vertex, pipeline_command, suite, with_board
):
    board = "projects/p-1/locations/us-central1/tensorboards/7"
    given = sets("experiment=nightly", *([f"tensorboard={board}"] if with_board else []))
    printed = pipeline_command(*arguments("submit", suite, vertex, *given, "--dry-run"))
    assert vertex.received == []
    pipeline_command(*arguments("submit", suite, vertex, *given))
    sent = [each for each in vertex.received if each.method != "GET"]
    requests = json.loads(printed.out)
    places = [each["url"].removeprefix(vertex.url).partition("?")[0] for each in requests]
    assert list(zip((each["method"] for each in requests), places, strict=True)) == [
        (each.method, each.path) for each in sent
    ]
    kinds = {
        "contexts": types.Context,
        "nightly": types.Context,
        "pipelineJobs": types.PipelineJob,
        "nightly:addContextChildren": types.AddContextChildrenRequest,
    }
    for request, one in zip(requests, sent, strict=True):
        kind = kinds[one.path.rsplit("/", 1)[1]]
        read, wanted = parsed(request["body"], kind), parsed(one.body, kind)
        if kind is types.AddContextChildrenRequest:
            read.child_contexts[0] = re.sub("<.*>", "run-1", read.child_contexts[0])
        assert read == wanted


def test_an_experiment_compares_runs_that_failed_too_by_their_state_medians_and_ratios(
    vertex, pipeline_command, suite, make_paired_run
):
    """As Google's client reads them: from the metadata of what the steps of a run put out.

    A step that fails puts nothing out, and judge-run fails by a regression: `finish` does then.
    """
    suite.write_text(f"{suite.read_text()}\n{ARMS}\n")
    given = (*sets("experiment=nightly"), "--pipeline", "regression")
    done = pipeline_command(*arguments("submit", suite, vertex, *given))
    assert done.code == 0, done.err
    made = finishing.finish(str(make_paired_run(0, 2.0).root), status="FAILED").named
    [job] = vertex.bodies("POST", "/pipelineJobs")
    kinds = job["pipelineSpec"]["components"]["comp-finish"]["outputDefinitions"]["artifacts"]
    assert kinds.keys() == made.keys()
    for name, kind in kinds.items():
        body = {
            "name": f"{vertex.parent}/metadataStores/default/artifacts/{name}",
            "metadata": dict(made[name].metadata),
            **kind["artifactType"],
        }
        parsed(body, types.Artifact)
        vertex.artifacts.append(body)
    frame = aiplatform.get_experiment_df("nightly", include_time_series=False)
    [row] = frame.to_dict("records")
    assert (row["metric.state"], row["metric.verdict"]) == ("REGRESSION", "REGRESSION")
    for ends in ("-baseline save s", "-candidate save s", " save ratio"):
        [value] = [row[name] for name in row if name.endswith(ends)]
        assert value > 0


@pytest.mark.parametrize(("state", "word", "code"), [(4, "succeeded", 0), (5, "failed", 1)])
def test_a_run_is_waited_for(pipeline_command, suite, tmp_path, monkeypatch, state, word, code):
    with fakes.FakeVertex(state).serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        done = pipeline_command(*arguments("run", suite, server))
    assert done.code == code, done.err
    assert f": {word}" in done.out


def test_a_run_that_somebody_deletes_ends_the_wait(pipeline_command, suite, monkeypatch):
    server = fakes.FakeVertex(state=3)
    monkeypatch.setattr("time.sleep", lambda _: server.jobs.clear())
    with server.serving():
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        done = pipeline_command(*arguments("run", suite, server))
    assert done.code == 1, done.err
    assert "was deleted; seen last: running" in done.out


@pytest.mark.parametrize("judged", [True, False])
def test_the_submitter_is_told_the_verdict_and_fetches_the_report(
    pipeline_command, suite, monkeypatch, tmp_path, judged
):
    told = RunEnding.of("REGRESSION", ("save takes 26 % longer",), "gs://b/out", b"")
    (tmp_path / "report.html").write_bytes(b"<html>page")
    if judged:
        (tmp_path / "verdicts.html").write_bytes(b"<html>verdicts")
    outputs = {
        "ending": {"artifacts": [{"uri": "gs://b/ending.md", "metadata": told.metadata}]},
        "report": {"artifacts": [{"uri": str(tmp_path / "report.html")}]},
        "verdicts_report": {"artifacts": [{"uri": str(tmp_path / "verdicts.html")}]},
    }
    finish = {"taskId": "9", "taskName": "finish", "outputs": outputs}
    parsed(finish, types.PipelineTaskDetail)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with fakes.FakeVertex(state=5, tasks=[finish]).serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        done = pipeline_command(*arguments("run", suite, server))
        assert done.code == 3, done.err
        assert "REGRESSION: save takes 26 % longer" in done.out
        [name] = server.jobs
        page = tmp_path / "fetched.html"
        run_id = name.rpartition("/")[2]
        fetched = pipeline_command("report", run_id, *target(server), "-o", page)
    assert f"pipeline report {run_id} --target vertex" in done.out
    assert fetched.code == 3
    assert page.read_bytes() == (b"<html>verdicts" if judged else b"<html>page")


def test_a_refusal_is_one_line_and_exit_code_1(pipeline_command, suite, monkeypatch):
    class Refusing(fakes.FakeVertex):
        def _jobs(self, received, path):
            return 403, {"error": {"code": 403, "message": "not yours"}}

    with Refusing().serving() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        done = pipeline_command(*arguments("submit", suite, server))
    assert done.code == 1
    assert "error: Vertex AI in p-1, us-central1 refused: 403" in done.err
    assert "not yours" in done.err
