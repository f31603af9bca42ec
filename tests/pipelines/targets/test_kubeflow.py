"""Requests to a Kubeflow Pipelines server, over the loopback interface."""

import functools
import json
import re
import types

import pytest

pytest.importorskip("kfp")

import kfp_server_api

from orbax_bench_core.engine import RunEnding
from tests.pipelines import fakes, strict
from tests.pipelines.conftest import SUITE, sets
from tests.support.blocks import ROOT
from tests.support.webhook import webhook  # noqa: F401 - fixture

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster():
    with fakes.FakeKubeflow().serving() as server:
        yield server


def arguments(command, suite, server, *more):
    settings = sets(f"endpoint={server.url}", "tpu=v5e:2x4")
    return [command, suite, "-o", "gs://b/out", "--target", "kfp", *settings, *more]


as_model = functools.partial(strict.as_model, kfp_server_api.ApiClient())


def test_the_body_of_a_run_is_read_back_strictly(cluster, pipeline_command, suite):
    done = pipeline_command(*arguments("submit", suite, cluster, "--set", "service_account=me"))
    assert done.code == 0, done.err
    [body] = cluster.bodies("POST", "/runs")
    run = as_model(body, "V2beta1Run")
    assert (run.display_name, run.service_account) == ("sweep-small-suite", "me")
    assert run.runtime_config.parameters["suite"] == SUITE
    assert run.experiment_id == "experiment-of-Default"
    strict.pipeline_spec(run.pipeline_spec["pipeline_spec"])
    assert "exec-run-sweep-point" in strict.platform_spec(run.pipeline_spec["platform_spec"])
    assert f"{cluster.url}/#/runs/details/run-1" in done.out


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, "{silent}"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("127.0.0.1:9", "https://127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize(
    ("command", "more"), [("submit", []), ("schedule", ["--cron", "0 3 * * *"])]
)
def test_where_nothing_answers_one_message_says_so(
    pipeline_command, suite, monkeypatch, command, more, given, meant
):
    from orbax_bench_pipelines.targets import job

    assert job.ANSWER_S < 10  # within 20 s, with the start of a command
    monkeypatch.setattr(job, "ANSWER_S", 1.0)
    with fakes.silent_address() as silent:
        server = types.SimpleNamespace(url=given or silent)
        done = pipeline_command(*arguments(command, suite, server, *more))
    assert (done.code, done.out) == (1, "")
    [said] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert f"Kubeflow Pipelines, at {meant.format(silent=silent)}" in said
    assert ("Connection refused" if given else "has not answered within") in said


@pytest.mark.parametrize("given", ["h ttp//x", "x:http", "http://a..b"])
def test_what_is_no_address_is_a_mistake_and_no_traceback(pipeline_command, suite, given):
    done = pipeline_command(*arguments("submit", suite, types.SimpleNamespace(url=given)))
    [said] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert (done.code, done.out) == (2, "")
    assert said.startswith("error: endpoint: ") and "is not an address" in said


def test_a_server_of_something_else_is_named(pipeline_command, suite):
    with fakes.address_that_answers(b"SSH-2.0-OpenSSH_9.6\r\n") as url:
        done = pipeline_command(*arguments("submit", suite, types.SimpleNamespace(url=url)))
    [said] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert (done.code, done.out) == (1, "")
    assert f"cannot reach Kubeflow Pipelines, at {url}" in said and "SSH-2.0" in said


@pytest.mark.parametrize(
    ("command", "path", "more"),
    [("submit", "/runs", []), ("schedule", "/recurringruns", ["--cron", "0 3 * * *"])],
)
def test_a_dry_run_prints_what_is_sent(cluster, pipeline_command, suite, command, path, more):
    printed = pipeline_command(*arguments(command, suite, cluster, *more, "--dry-run"))
    assert cluster.received == []
    pipeline_command(*arguments(command, suite, cluster, *more))
    [request] = json.loads(printed.out)
    [sent] = cluster.bodies("POST", path)
    assert request["url"] == f"{cluster.url}/apis/v2beta1{path}"
    assert request["body"].pop("experiment_id").startswith("<id of the experiment 'Default'")
    assert sent.pop("experiment_id") == "experiment-of-Default"
    assert request["body"] == sent


def test_a_recurring_run_has_a_cron_of_six_fields(cluster, pipeline_command, suite):
    done = pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 3 * * *"))
    assert done.code == 0, done.err
    [body] = cluster.bodies("POST", "/recurringruns")
    recurring = as_model(body, "V2beta1RecurringRun")
    assert recurring.trigger.cron_schedule.cron == "0 0 3 * * *"
    assert "six fields, seconds first: '0 3 * * *' is sent as '0 0 3 * * *'" in done.err
    assert "03:00 (UTC)" in done.err
    assert (recurring.mode, recurring.max_concurrency) == ("ENABLE", "1")
    strict.pipeline_spec(recurring.pipeline_spec["pipeline_spec"])


def test_scheduling_again_replaces_the_schedule_of_that_name_only(cluster, pipeline_command, suite):
    for name, cron in (("other", "0 1 * * *"), ("mine", "0 3 * * *"), ("mine", "0 4 * * *")):
        done = pipeline_command(
            *arguments("schedule", suite, cluster, "--cron", cron, "--name", name)
        )
        assert done.code == 0, done.err
    left = [
        (each["display_name"], each["trigger"]["cron_schedule"]["cron"])
        for each in cluster.recurring.values()
    ]
    assert left == [("other", "0 0 1 * * *"), ("mine", "0 0 4 * * *")]
    assert "replaces recurring-2" in done.out


def active_run(server, recurring_run, state="RUNNING"):
    """Has a recurring run have begun a run."""
    run = {"run_id": f"run-of-{recurring_run}", "recurring_run_id": recurring_run, "state": state}
    server.runs[run["run_id"]] = run


def test_a_recurring_run_is_not_deleted_under_its_active_run(cluster, pipeline_command, suite):
    for cron in ("0 3 * * *", "0 4 * * *"):
        done = pipeline_command(*arguments("schedule", suite, cluster, "--cron", cron))
        active_run(cluster, "recurring-1")
    assert {key: each["status"] for key, each in cluster.recurring.items()} == {
        "recurring-1": "DISABLED",
        "recurring-2": "ENABLED",
    }
    assert "replaces recurring-1, which stays paused; 1 run of it still active" in done.out
    cluster.runs["run-of-recurring-1"]["state"] = "SUCCEEDED"
    again = pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 5 * * *"))
    assert list(cluster.recurring) == ["recurring-3"]
    assert "replaces recurring-1\nreplaces recurring-2\n" in again.out


def test_with_wait_the_new_one_begins_when_no_run_of_the_old_one_is_active(
    cluster, pipeline_command, suite, monkeypatch
):
    from orbax_bench_pipelines.targets import job

    pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 3 * * *"))
    active_run(cluster, "recurring-1")
    seen = []

    def ends(_):
        seen.extend(each["status"] for each in cluster.recurring.values())
        cluster.runs.clear()

    monkeypatch.setattr(job.time, "sleep", ends)
    done = pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 4 * * *", "--wait"))
    assert seen == ["DISABLED"]
    assert list(cluster.recurring) == ["recurring-2"]
    assert "note: waiting for run-of-recurring-1 to end" in done.err


def test_where_the_new_one_is_refused_the_old_one_goes_on(pipeline_command, suite):
    class Refusing(fakes.FakeKubeflow):
        def answer(self, received):
            new = received.method == "POST" and received.path.endswith("/recurringruns")
            if new and self.recurring:
                return 403, {"message": "not yours"}
            return super().answer(received)

    with Refusing().serving() as server:
        for code in (0, 1):
            done = pipeline_command(*arguments("schedule", suite, server, "--cron", "0 3 * * *"))
            assert done.code == code
        assert [each["status"] for each in server.recurring.values()] == ["ENABLED"]


def test_a_recurring_run_is_paused_and_resumed(cluster, pipeline_command, suite):
    pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 3 * * *"))
    where = ["sweep-small-suite", "--target", "kfp", "--set", f"endpoint={cluster.url}"]
    active_run(cluster, "recurring-1")
    paused = pipeline_command("pause", *where)
    assert paused.out == (
        "paused: sweep-small-suite recurring-1; 1 run of it still active: run-of-recurring-1\n"
    )
    assert cluster.recurring["recurring-1"]["status"] == "DISABLED"
    cluster.runs.clear()
    changed = pipeline_command(*arguments("schedule", suite, cluster, "--cron", "0 4 * * *"))
    assert "note: it is paused; orbax-bench pipeline resume sweep-small-suite" in changed.out
    [(key, recurring)] = cluster.recurring.items()
    assert (key, recurring["status"]) == ("recurring-2", "DISABLED")
    assert pipeline_command("resume", *where).code == 0
    assert cluster.recurring["recurring-2"]["status"] == "ENABLED"


def test_a_recurring_run_that_there_is_not_cannot_be_paused(cluster, pipeline_command):
    done = pipeline_command("pause", "mine", "--target", "kfp", "--set", f"endpoint={cluster.url}")
    assert done.code == 2
    assert "there is no recurring run 'mine' in the experiment 'Default'" in done.err


@pytest.mark.parametrize(
    ("states", "code"),
    [(["PENDING", "RUNNING", "SUCCEEDED"], 0), (["RUNNING", "FAILED"], 1), (["CANCELED"], 1)],
)
def test_a_run_is_waited_for(pipeline_command, suite, tmp_path, monkeypatch, states, code):
    from orbax_bench_pipelines.targets import kubeflow

    monkeypatch.setattr(kubeflow.time, "sleep", lambda _: None)
    with fakes.FakeKubeflow(states).serving() as server:
        settings = sets(f"endpoint={server.url}", f"pvc={{name: claim, path: {tmp_path}}}")
        words = ("-o", tmp_path / "out", "--target", "kfp", *settings)
        done = pipeline_command("run", suite, *words)
    assert done.code == code, done.err
    assert states[-1].lower() in done.out
    assert "which this machine cannot read" in done.out


def test_an_experiment_that_another_submitter_makes_meanwhile_is_taken(pipeline_command, suite):
    class Raced(fakes.FakeKubeflow):
        def answer(self, received):
            found = super().answer(received)
            if (received.method, received.path[-12:]) == ("POST", "/experiments"):
                return 409, {"code": 6, "message": "The name nightly already exists"}
            return found

    with Raced().serving() as server:
        named = sets("experiment=nightly")
        done = pipeline_command(*arguments("submit", suite, server, *named))
    assert done.code == 0, done.err
    assert server.bodies("POST", "/runs")[0]["experiment_id"] == "experiment-of-nightly"


def test_a_refusal_is_one_line_and_exit_code_1(pipeline_command, suite):
    class Refusing(fakes.FakeKubeflow):
        def answer(self, received):
            if received.path.endswith("/runs"):
                return 403, {"message": "not yours"}
            return super().answer(received)

    with Refusing().serving() as server:
        done = pipeline_command(*arguments("submit", suite, server))
    assert done.code == 1
    assert f"error: Kubeflow Pipelines at {server.url} answered 403" in done.err
    assert "not yours" in done.err


@pytest.mark.parametrize(
    ("answer", "said"),
    [(fakes.UNWELL, "answered 503 Service Unavailable"), (fakes.SIGN_IN, "a page for signing in")],
)
def test_what_is_not_well_or_another_service_is_one_message(pipeline_command, suite, answer, said):
    server = fakes.FakeServer()
    server.answer = lambda received: answer
    with server.serving():
        done = pipeline_command(*arguments("submit", suite, server))
    assert (done.code, done.out) == (1, "")
    [line] = [line for line in done.err.splitlines() if not line.startswith("note: ")]
    assert said in line


SERVED = ("healthz", "experiments", "pipelines", "recurringruns", "runs")
"""What Kubeflow's API server answers without a metadata store, which 2.17 has and later may not."""


def test_nothing_of_ours_asks_a_metadata_store(cluster, pipeline_command, suite):
    for command, more in (("submit", []), ("schedule", ["--cron", "0 3 * * *"])):
        done = pipeline_command(*arguments(command, suite, cluster, *more))
        assert done.code == 0, done.err
    asked = {
        each.path.removeprefix("/apis/v2beta1/").partition("/")[0] for each in cluster.received
    }
    assert asked <= set(SERVED)


def test_no_source_of_ours_knows_kubeflows_metadata_store():
    """Vertex AI's is another one, which `lineage` asks for artifacts by their names there."""
    words = re.compile(r"ml_metadata|mlmd|metadata[-_]grpc|metadata[-_]envoy", re.IGNORECASE)
    packages = ("orbax_bench_core", "components", "pipelines", "airflow_pipelines")
    files = [file for name in packages for file in (ROOT / name).rglob("*.py")]
    files += [file for name in packages for file in (ROOT / name).rglob("*.yaml")]
    assert len(files) > 100
    assert [str(file) for file in files if words.search(file.read_text())] == []
    assert "ml-metadata" not in (ROOT / "requirements.lock").read_text()


@pytest.fixture
def regressed():
    """A cluster whose run failed by a regression, and whose exit task told so in its log."""
    reasons = ("save takes 26 % longer",)
    told = RunEnding.of("REGRESSION", reasons, "/no-such-folder/r1", b"<html>page")
    logs = {"driver": "driving", "finish": f"some words\n{told.line}\norbax-bench: REGRESSION"}
    with fakes.FakeKubeflow(("RUNNING", "FAILED"), logs).serving() as server:
        yield server


def test_the_submitter_is_told_the_verdict_and_where_the_report_is(
    regressed, pipeline_command, suite, monkeypatch, webhook
):
    monkeypatch.setattr("time.sleep", lambda _: None)
    claim = sets("pvc={name: bench, path: /no-such-folder}", "image=a/b:1")
    given = ("run", suite, "-o", "/no-such-folder/r1", "--target", "kfp", "--notify", webhook.url)
    done = pipeline_command(*given, *sets(f"endpoint={regressed.url}"), *claim)
    assert done.code == 3, done.err
    assert "REGRESSION: save takes 26 % longer" in done.out
    fetched = f"pipeline report run-1 --target kfp --set endpoint={regressed.url} -o report.html"
    assert f"Report: orbax-bench {fetched}" in done.out
    assert "see its steps" not in done.out
    assert webhook.states == ["REGRESSION"]


def test_the_report_of_a_run_is_fetched(regressed, pipeline_command, tmp_path):
    page = tmp_path / "page.html"
    where = ("--target", "kfp", *sets(f"endpoint={regressed.url}"))
    done = pipeline_command("report", "run-1", *where, "-o", page)
    assert (done.code, page.read_bytes()) == (3, b"<html>page")
    assert done.out.splitlines() == ["REGRESSION: save takes 26 % longer", f"Report: {page}"]


def test_a_run_whose_logs_are_gone_is_told_in_one_message(cluster, pipeline_command, tmp_path):
    where = ("--target", "kfp", *sets(f"endpoint={cluster.url}"))
    done = pipeline_command("report", "run-1", *where, "-o", tmp_path / "page.html")
    assert (done.code, done.out) == (1, "")
    assert "the service has no ending of the run run-1" in done.err


@pytest.mark.parametrize("ended", ["SUCCEEDED", "FAILED"])
def test_a_step_that_cannot_start_is_named_with_the_reason_of_kubernetes(
    pipeline_command, suite, monkeypatch, ended
):
    path = "orbax-bench-sweep-x(0).root(0).exit-handler-1(0).{}(0).executor(0)"
    pulled = 'ImagePullBackOff: Back-off pulling image "a/b:1"'
    nodes = [
        {"name": path.format(step), "type": "Pod", "phase": phase, "message": message}
        for step, phase, message in (
            ("begin-run", "Pending", pulled),
            ("judge-run", "Pending", "PodInitializing"),
            ("finish", "Failed", "an older failure"),
        )
    ]
    monkeypatch.setattr("time.sleep", lambda _: None)
    states = ("PENDING", "RUNNING", "RUNNING", ended)
    with fakes.FakeKubeflow(states, nodes=nodes).serving() as server:
        done = pipeline_command(*arguments("run", suite, server, *sets("image=a/b:1")))
    said = f"begin-run has not started: {pulled}"
    told = [f"The pipeline failed: failed: {said}"] if ended == "FAILED" else []
    assert done.code == len(told), done.err
    assert [line for line in done.out.splitlines() if "has not started" in line] == [said, *told]


def test_a_service_that_fails_for_a_while_is_asked_again(pipeline_command, suite, monkeypatch):
    class Restarted(fakes.FakeKubeflow):
        def answer(self, received):
            asked = len(self.bodies("GET", "/runs/run-1"))
            if received.path.endswith("v2beta1/runs/run-1") and asked in range(3, 6):
                return fakes.UNWELL
            return super().answer(received)

    monkeypatch.setattr("time.sleep", lambda _: None)
    with Restarted(("RUNNING", "SUCCEEDED")).serving() as server:
        done = pipeline_command(*arguments("run", suite, server))
    assert done.code == 0, done.err
    [said] = [line for line in done.out.splitlines() if "answered 503" in line]
    assert said.endswith("it is asked again for 10 minutes")


@pytest.mark.parametrize("deleted", ["run", "workflow"])
def test_a_run_that_somebody_deletes_ends_the_wait_with_what_was_seen(
    pipeline_command, suite, monkeypatch, webhook, deleted
):
    """Of a workflow that is deleted Kubeflow learns nothing: the run stays RUNNING for ever."""
    nodes = [
        {"name": f"x(0).root(0).{name}", "type": "Pod", "phase": phase}
        | {"id": f"wf-{number}", "templateName": "impl"}
        for number, (name, phase) in enumerate(
            [
                ("begin-run(0).executor(0)", "Succeeded"),
                ("run-sweep-point(0).executor(0)", "Running"),
                ("run-sweep-point-driver(0)", "Succeeded"),
            ]
        )
    ]
    states = ("RUNNING", "RUNNING", "DELETED" if deleted == "run" else "RUNNING")
    server, slept = fakes.FakeKubeflow(states, {"wf-impl-1": "measuring"}, nodes), []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            server.logs.clear()

    monkeypatch.setattr("time.sleep", sleep)
    with server.serving():
        done = pipeline_command(*arguments("run", suite, server, "--notify", webhook.url))
    assert done.code == 1, done.err
    [said] = [line for line in done.out.splitlines() if "The pipeline failed" in line]
    assert f"the {'workflow of the ' * (deleted == 'workflow')}run run-1 was deleted" in said
    assert said.endswith("seen last: running, begin-run succeeded, run-sweep-point running")
    assert sum(slept) == (20 if deleted == "run" else 190)
    [(_, message)] = webhook.posted
    assert (message["state"], "was deleted" in message["lines"][0]) == ("FAILED", True)


def test_a_long_step_whose_log_the_service_may_not_read_is_waited_for(
    pipeline_command, suite, monkeypatch
):
    """A role without `pods/log`, as seen: archived logs of ended steps are read all the same."""
    names = [("begin-run", "Succeeded"), ("run-sweep-point", "Running")]
    nodes = [
        {"name": f"x(0).root(0).{name}(0).executor(0)", "type": "Pod", "phase": phase}
        | {"id": f"wf-{number}", "templateName": "impl"}
        for number, (name, phase) in enumerate(names)
    ]
    states = ("RUNNING",) * 40 + ("SUCCEEDED",)
    server, slept = fakes.FakeKubeflow(states, {"wf-impl-0": "begun"}, nodes), []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 1:  # the step before is noted as running a while after its end
            nodes[0]["phase"] = "Running"
        if len(slept) == 2:
            nodes[0]["phase"] = "Succeeded"

    monkeypatch.setattr("time.sleep", sleep)
    with server.serving():
        done = pipeline_command(*arguments("run", suite, server))
    assert "was deleted" not in done.out
    assert sum(slept) >= 390
