"""Launches on a loopback Kubernetes API, from creation to deletion."""

import re
import sys
import threading
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import make_launcher
from tests.support.kubernetes import Cluster, serving
from tests.support.processes import run_cli, start_cli

pytestmark = pytest.mark.slow
followed = pytest.importorskip(
    "orbax_bench_core.launchers.followed", reason="needs the extra `kubernetes`"
)

IMAGE = f"registry.example/bench@sha256:{'a1' * 32}"
SUITE = """
suite_name: tiny
checkpoint_config: {spec: {a: {dtype: float32, shape: [8, 2], sharding: [x, null]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks: [{generator: save_restore, options: {}}]
"""
HEAD = "ob-tiny-hosts-0-0-abcde"
OTHER = "ob-tiny-hosts-0-1-fghij"


class Time:
    """A clock that only waiting moves."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Launched:
    """One launch of two hosts on a cluster."""

    def __init__(self, tmp_path, cluster, kubeconfig):
        self.cluster = cluster
        self.kubeconfig = kubeconfig
        self.time = Time()
        self.folder = tmp_path
        self.directory = tmp_path / "volume" / "run"
        self.directory.parent.mkdir()
        self.suite = tmp_path / "suites" / "tiny.yaml"
        self.suite.parent.mkdir()
        self.suite.write_text("suite_name: tiny\n")

    def launcher(self, *settings):
        mounted = f"volume=runs:{self.folder}/volume"
        return make_launcher(
            "jobset",
            [mounted, *settings],
            (),
            name="ob-tiny",
            command=("orbax-bench", "run", str(self.suite), "-o", str(self.directory)),
            output_directory=str(self.directory),
            hosts=2,
            image=IMAGE,
        )

    def run(self, *settings):
        return self.launcher(f"kubeconfig={self.kubeconfig}", *settings).start()

    def assert_nothing_is_left(self):
        assert self.cluster.objects["jobsets"] == {}
        assert self.cluster.objects["secrets"] == {}


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def launched(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(followed.pods, "_REOPEN_S", 0.02)
    at_once = followed._PATIENCE.new(backoff_factor=0)
    monkeypatch.setattr(followed, "_PATIENCE", at_once)
    with serving(cluster, tmp_path) as kubeconfig:
        made = Launched(tmp_path, cluster, kubeconfig)
        monkeypatch.setattr(followed, "time", made.time)
        yield made


def running(cluster):
    cluster.pod(HEAD, index=0, running={})
    cluster.pod(OTHER, index=1, running={})


def completed(cluster):
    cluster.pod(HEAD, index=0, terminated={"exitCode": 0})
    cluster.pod(OTHER, index=1, terminated={"exitCode": 0})
    cluster.status(terminalState="Completed")


def failed(code):
    def step(cluster):
        cluster.pod(HEAD, index=0, terminated={"exitCode": code, "reason": "Error"})
        cluster.pod(OTHER, index=1, terminated={"exitCode": code, "reason": "Error"})
        condition = {"type": "Failed", "status": "True", "message": "a job has failed"}
        cluster.status(terminalState="Failed", conditions=[condition])

    return step


def suspended(*, so):
    def step(cluster):
        cluster.job["spec"]["suspend"] = so
        cluster.status(conditions=[{"type": "Suspended", "status": str(so)}])

    return step


def nothing(cluster):
    pass


def test_a_run_is_created_followed_and_deleted(launched, cluster, capfd):
    cluster.script = [nothing, running, completed]
    cluster.logs[HEAD, False] = [
        "2026-01-02T03:04:05.000000001Z point 1 of 2",
        "2026-01-02T03:04:06.000000001Z done",
    ]
    assert launched.run() == 0
    out, err = capfd.readouterr()
    assert out == "point 1 of 2\ndone\n"
    assert "created JobSet bench/ob-tiny" in err
    assert "0 of 2 pods run" in err
    assert "2 of 2 pods run" in err
    launched.assert_nothing_is_left()
    assert cluster.deleted == ["jobsets/ob-tiny", "secrets/ob-tiny-token"]


def test_a_volume_that_is_not_mounted_here_is_refused_before_anything_is_made(launched, cluster):
    launched.directory.parent.rmdir()
    said = f"{launched.folder}/volume, which the hosts mount, is no folder of this machine"
    assert said in launched.launcher().shown()
    with pytest.raises(UserError, match=f"{said}.*suite_in_image=PATH"):
        launched.run()
    assert not launched.directory.parent.exists()
    launched.assert_nothing_is_left()


def test_logs_of_pods_make_no_folder_of_a_volume_that_is_not_mounted_here(launched, cluster, capfd):
    launched.directory.parent.rmdir()
    cluster.script = [running, failed(1)]
    cluster.logs[OTHER, False] = ["no such file"]
    assert launched.run("suite_in_image=/suites/a.yaml") == 1
    place = re.search(rf"pod {OTHER} has failed .*; its log is (\S+)", capfd.readouterr().err)
    assert Path(place[1]).read_text() == "no such file\n"
    assert not launched.directory.parent.exists()


def test_the_token_goes_into_the_secret_alone_and_the_secret_goes_with_the_jobset(
    launched, cluster, capfd
):
    cluster.script = [completed]
    launched.run()
    jobset, secret = cluster.sent
    token = secret["stringData"]["token"]
    assert token not in str(jobset)
    assert token not in "".join(capfd.readouterr())
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("JobSet", "ob-tiny", "uid-1")


def test_the_exit_code_is_that_of_host_0_and_logs_of_failed_pods_are_kept(launched, cluster, capfd):
    cluster.script = [running, failed(3)]
    cluster.logs[HEAD, False] = ["2026-01-02T03:04:05.000000001Z trouble"]
    cluster.logs[OTHER, False] = ["Traceback"]
    assert launched.run() == 3
    kept = launched.directory / "logs" / "pods" / f"{OTHER}-bench-0.log"
    assert kept.read_text() == "Traceback\n"
    err = capfd.readouterr().err
    assert f"pod {OTHER} has failed (exit code 3, Error); its log is {kept}" in err
    assert "JobSet bench/ob-tiny failed: a job has failed" in err
    launched.assert_nothing_is_left()


def replaced_at_the_end(*, then="running"):
    """Host 0 has ended with 0 when host 1 is lost, and made again; it finds no host 0."""

    def step(cluster):
        cluster.pod(HEAD, index=0, phase="Succeeded", terminated={"exitCode": 0})
        cluster.objects["pods"].pop(OTHER, None)
        if then == "running":
            cluster.pod("ob-tiny-hosts-0-1-klmno", index=1, running={})
        elif then == "failed":
            cluster.status(terminalState="Failed", conditions=[])

    return step


@pytest.mark.parametrize("then", ["running", "failed", "gone"])
def test_a_run_is_over_when_host_0_has_ended(launched, cluster, capfd, then):
    cluster.script = [running, replaced_at_the_end(then=then)]
    assert launched.run() == 0
    assert launched.time.now < 60
    assert "host 0 has ended" in capfd.readouterr().err
    launched.assert_nothing_is_left()


def test_the_log_of_a_container_that_was_restarted_is_kept(launched, cluster):
    def restarted(cluster):
        killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        cluster.pod(OTHER, index=1, running={}, restarts=1, last=killed)

    cluster.script = [running, restarted, completed]
    cluster.logs[OTHER, True] = ["before the kill"]
    assert launched.run() == 0
    kept = launched.directory / "logs" / "pods" / f"{OTHER}-bench-0.log"
    assert kept.read_text() == "before the kill\n"


def test_a_suite_that_is_refused_is_not_started_again(launched, cluster, capfd):
    def invalid(cluster):
        cluster.pod(HEAD, index=0, running={}, restarts=1, last={"terminated": {"exitCode": 2}})

    cluster.script = [running, invalid]
    assert launched.run() == 2
    assert "host 0 refused to run" in capfd.readouterr().err
    launched.assert_nothing_is_left()


def test_a_preempted_slice_is_followed_through_its_restart(launched, cluster, capfd):
    def preempted(cluster):
        cluster.objects["pods"].clear()
        cluster.pod("ob-tiny-hosts-0-0-later", index=0, running={})
        cluster.status(restarts=1)

    cluster.script = [running, nothing, nothing, preempted, nothing, completed]
    cluster.logs[HEAD, False] = ["2026-01-02T03:04:05.000000001Z first life"]
    cluster.logs["ob-tiny-hosts-0-0-later", False] = ["2026-01-02T03:05:05.000000001Z second life"]
    assert launched.run() == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[:2] == ["first life", "second life"]
    assert "all were restarted 1 times" in err


def test_a_broken_log_goes_on_where_it_was(launched, cluster, capfd):
    opened = threading.Event()
    asked = []

    def log(query):
        asked.append(query)
        lines = [f"2026-01-02T03:04:05.{each:09}Z line {each}" for each in (1, 2, 3, 12)]
        if len(asked) == 1:
            return lines[:2]
        opened.set()
        return lines

    def opened_again(cluster):
        cluster.lock.release()  # the log is asked for meanwhile
        try:
            assert opened.wait(60)
        finally:
            cluster.lock.acquire()

    cluster.logs[HEAD, False] = log
    cluster.script = [running, nothing, opened_again, completed]
    assert launched.run() == 0
    assert capfd.readouterr().out == "".join(f"line {each}\n" for each in (1, 2, 3, 12))


def test_a_server_that_fails_is_asked_again(launched, cluster):
    cluster.script = [running, completed]
    cluster.failures = {
        "GET jobsets": [500, 503],
        "POST jobsets": [500, 429, 503],
        "POST secrets": [500],
        "DELETE jobsets": [504],
    }
    assert launched.run() == 0
    assert not any(cluster.failures.values())
    launched.assert_nothing_is_left()


def test_a_jobset_that_was_created_although_the_server_failed_is_the_one(launched, cluster, capfd):
    cluster.lost_answers = {"POST jobsets": [500], "POST secrets": [500]}
    cluster.script = [nothing, running, completed]
    assert launched.run() == 0
    assert [body["kind"] for body in cluster.sent].count("JobSet") == 1
    launched.assert_nothing_is_left()


def test_no_server_at_all_is_one_message(launched, cluster):
    text = Path(launched.kubeconfig).read_text()
    Path(launched.kubeconfig).write_text(re.sub(r"127.0.0.1:\d+", "127.0.0.1:9", text))
    with pytest.raises(UserError, match=r"API at http://127\.0\.0\.1:9 does not answer"):
        launched.run()


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "has the role that this takes"), (404, "install JobSet"), (422, "--dry-run prints")],
)
def test_a_refusal_is_one_message_with_the_servers_words(launched, cluster, status, said):
    cluster.failures = {"POST jobsets": [status]}
    with pytest.raises(UserError, match=said) as caught:
        launched.run()
    assert f"{status}: injected {status}" in str(caught.value)
    assert cluster.deleted == [], "nothing was created"


@pytest.mark.parametrize("watch", ["slow", "gone", 410, 500])
def test_a_watch_that_ends_is_begun_anew(launched, cluster, watch):
    cluster.slow_s = 0.05
    cluster.script = [nothing, running, completed]
    cluster.watches = [watch] * 2
    assert launched.run() == 0


def test_waiting_in_a_queue_counts_as_no_time(launched, cluster, capfd):
    def an_hour(cluster):
        launched.time.now += 3600

    admitted = suspended(so=False)
    cluster.script = [suspended(so=True), an_hour, an_hour, admitted, running, completed]
    assert launched.run("queue=tpus", "start_timeout_s=600", "timeout_s=900") == 0
    assert "waits in the queue tpus of Kueue" in capfd.readouterr().err


def test_pods_that_do_not_start_end_the_launch_with_the_reason(launched, cluster):
    def unschedulable(cluster):
        waiting = {"reason": "ErrImagePull", "message": "no such image"}
        cluster.pod(HEAD, index=0, waiting=waiting)
        condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes fit"}
        cluster.pod(OTHER, index=1, conditions=[condition], phase="Pending")
        launched.time.now += 700

    cluster.script = [unschedulable] * 3
    with pytest.raises(UserError, match="not all of 2 pods ran within 600 s") as caught:
        launched.run("start_timeout_s=600")
    assert f"{HEAD}: ErrImagePull: no such image" in str(caught.value)
    assert f"{OTHER}: 0/3 nodes fit" in str(caught.value)
    launched.assert_nothing_is_left()


def test_a_run_that_takes_too_long_is_ended(launched, cluster):
    def long(cluster):
        running(cluster)
        launched.time.now += 700

    cluster.script = [long] * 3
    with pytest.raises(UserError, match="has not ended within 900 s"):
        launched.run("timeout_s=900")
    launched.assert_nothing_is_left()


def there_already(launched, cluster, **status):
    """Puts the JobSet in place that this launch would create."""
    cluster.stored("jobsets", launched.launcher().manifest())
    cluster.job["status"] = status


def test_a_jobset_of_the_same_launch_is_gone_on_with(launched, cluster, capfd):
    there_already(launched, cluster)
    cluster.script = [nothing, running, completed]
    assert launched.run() == 0
    assert "going on with JobSet bench/ob-tiny" in capfd.readouterr().err
    assert [body["kind"] for body in cluster.sent] == ["Secret"], "it had none"
    assert not (launched.directory / "suite").exists(), "the one that runs has its suite"


def test_a_finished_one_makes_room(launched, cluster):
    there_already(launched, cluster, terminalState="Failed")
    cluster.script = [nothing, nothing, completed]
    assert launched.run() == 0
    assert cluster.deleted.count("jobsets/ob-tiny") == 2


def test_a_jobset_of_something_else_is_left_alone(launched, cluster):
    there_already(launched, cluster)
    launched.suite.write_text("suite_name: other\n")
    with pytest.raises(UserError, match="is there already, and runs something else"):
        launched.run()
    assert cluster.deleted == []


def test_a_jobset_that_somebody_deletes_ends_the_launch(launched, cluster):
    cluster.script = [running, lambda cluster: cluster.objects["jobsets"].clear()]
    with pytest.raises(UserError, match="was deleted by somebody else"):
        launched.run()


def test_what_is_kept_stays_and_is_named(launched, cluster, capfd):
    cluster.script = [completed]
    assert launched.run("keep=true") == 0
    assert "kubectl delete jobsets ob-tiny -n bench" in capfd.readouterr().err
    assert set(cluster.objects["jobsets"]) == {"ob-tiny"}


def test_a_pod_owns_what_it_creates(launched, cluster, monkeypatch):
    cluster.pod("step-1", own="none", running={})
    cluster.script = [completed]
    monkeypatch.setenv("KFP_POD_NAME", "step-1")
    before = followed._cluster
    monkeypatch.setattr(followed, "_cluster", lambda settings: (*before(settings)[:2], True))
    assert launched.run() == 0
    (owner,) = cluster.sent[0]["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "step-1", "uid": "uid-step-1"}


def command_line(launched):
    """Returns the words of a launch of two hosts."""
    launched.suite.write_text(SUITE)
    words = ["launch", launched.suite, "-o", launched.directory, "--on", "jobset", "--hosts", 2]
    words += ["--name", "ob-tiny", "--image", IMAGE, "--set", f"kubeconfig={launched.kubeconfig}"]
    return [*words, "--set", f"volume=runs:{launched.folder}/volume", "--", "--no-lock"]


def test_the_command_line_launches_and_returns_the_code_of_host_0(launched, cluster):
    cluster.script = [running, failed(1)]
    cluster.logs[HEAD, False] = ["2026-01-02T03:04:05.000000001Z 1 of 2 failed"]
    done = run_cli(*command_line(launched))
    assert done.returncode == 1, done.stderr
    assert done.stdout == "1 of 2 failed\n"
    (container,) = pod_of(cluster.sent[0])["containers"]
    sent = f"{launched.directory}/suite/tiny.yaml"
    assert container["command"][2:] == [sent, "-o", str(launched.directory), "--no-lock"]
    launched.assert_nothing_is_left()


def test_a_launch_that_is_told_to_end_deletes_all(launched, cluster):
    cluster.slow_s = 0.1
    cluster.watches = ["slow"] * 1000
    cluster.script = [nothing, running]
    with start_cli(*command_line(launched)) as process:
        try:
            for line in process.stdout:
                if "2 of 2 pods run" in line:
                    break
            process.terminate()
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "interrupted; the same command goes on" in said
    launched.assert_nothing_is_left()


def test_without_the_client_there_is_one_message(launched, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UserError, match=r"pip install 'orbax-bench\[kubernetes\]'"):
        launched.run()


def pod_of(jobset):
    return jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
