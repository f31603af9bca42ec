"""Kubeflow target: runs and recurring runs on Kubeflow Pipelines, and how a server is reached."""

import contextlib
import functools
import http
import io
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import kfp
import kfp_server_api
import urllib3.exceptions
import yaml

from orbax_bench_core.engine import RunEnding
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.pages import count
from orbax_bench_pipelines.cron import Cron
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.job import (
    ANSWER_S,
    Job,
    Request,
    RunGone,
    SubmissionFailed,
    answered,
    as_text,
    await_end,
    patiently,
    require_answer,
)
from orbax_bench_pipelines.targets.settings import Settings

_API = "/apis/v2beta1"
TOKEN_VARIABLE = "ORBAX_BENCH_KFP_TOKEN"  # noqa: S105 - the name of a variable, not a secret
DEFAULT_EXPERIMENT = "Default"
ENDED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED", "ERROR")
"""States of a run that does not change any more."""
_PAGE = 100
_STARTING = ("", "ContainerCreating", "PodInitializing")
"""What Argo notes of a pod that is about to start."""
_NO_LOG: Final = '{"error_message":'
_GONE_S: Final = 180.0
"""Seconds for which a running pod, whose log was read before, has none: its workflow was deleted.

Argo tries a pod that was lost again, after minutes at most.
"""


class StepPod(NamedTuple):
    """A pod of a run, as Argo notes it."""

    step: str
    name: str
    works: bool  # whether it is the step itself, and no driver
    phase: str  # Pending, Running, Succeeded, Failed, Error
    message: str

    @property
    def waits(self) -> bool:
        """Whether Kubernetes says why it has not started."""
        return self.phase == "Pending" and self.message not in _STARTING


class KubeflowServer:
    """A Kubeflow Pipelines installation, which is connected to when something is asked of it."""

    def __init__(self, settings: Settings) -> None:
        """Takes the settings that say where it is."""
        self._settings = settings

    @functools.cached_property
    def client(self) -> Any:
        """The endpoint, or the cluster of the kubeconfig, as `kfp.Client` finds it."""
        # The client asks again for minutes, and prints a traceback each time.
        if self.endpoint:
            require_answer("Kubeflow Pipelines", f"{self.endpoint.rstrip('/')}{_API}/healthz")
        with contextlib.redirect_stdout(io.StringIO()), _unlogged():
            connect = functools.partial(
                kfp.Client,
                host=self.endpoint,
                namespace=self._settings.namespace or "kubeflow",
                existing_token=os.environ.get(TOKEN_VARIABLE),
            )
            return answered(connect, self._place)

    @property
    def endpoint(self) -> str | None:
        """Its address with a scheme, https unless another is given, as in `kfp.Client`."""
        given = self._settings.endpoint
        return f"https://{given}" if given and "://" not in given else given

    @property
    def _place(self) -> str:
        """Where it is, in words."""
        at = self.endpoint
        return f"Kubeflow Pipelines at {at}" if at else "the cluster of the kubeconfig"

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self._settings.experiment or DEFAULT_EXPERIMENT

    def experiment_id(self) -> str:
        """Returns the id of the experiment, which is made when it is missing."""
        make = functools.partial(
            self.client.create_experiment, self.experiment, namespace=self._settings.namespace
        )
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a link of its own
            try:
                experiment = make()
            except kfp_server_api.ApiException as error:
                if error.status != http.HTTPStatus.CONFLICT:
                    raise
                experiment = make()  # another submitter has made it meanwhile
        if not experiment.experiment_id:
            raise SubmissionFailed(
                f"what answers as {self._place} is something else, perhaps a page for signing in; "
                f"a bearer token is taken from {TOKEN_VARIABLE}"
            )
        return str(experiment.experiment_id)

    def recurring_runs(self, name: str, experiment_id: str) -> list[Any]:
        """Returns the recurring runs of that name in an experiment, oldest first."""
        ask = functools.partial(self.client.list_recurring_runs, sort_by="created_at asc")
        found = _listed(ask, "recurring_runs", experiment_id)
        return [each for each in found if each.display_name == name]

    def active_runs(self, recurring_run_id: str, experiment_id: str) -> list[str]:
        """Returns the ids of the runs that a recurring run has begun and that have not ended."""
        return [
            str(run.run_id)
            for run in _listed(self.client.list_runs, "runs", experiment_id)
            if run.recurring_run_id == recurring_run_id and run.state not in ENDED
        ]

    def run(self, run_id: str) -> kfp_server_api.V2beta1Run | None:
        """Returns a run, or None if there is no such run."""
        with self.explained():
            try:
                return self.client.get_run(run_id)
            except kfp_server_api.ApiException as error:
                if error.status != http.HTTPStatus.NOT_FOUND:
                    raise
                return None

    def ending(self, run_id: str) -> RunEnding | None:
        """Returns how a run ended, by the log of its exit task; None if no log tells it.

        Logs are there as long as pods, and after that where the installation archives them.
        """
        run = self.run(run_id)
        if run is None:
            raise SubmissionFailed(f"{self._place} has no run {run_id}")
        details = getattr(run.run_details, "task_details", None) or ()
        # The exit task is the last to begin, and each task names the pods below it.
        latest = sorted(details, key=lambda task: str(task.create_time), reverse=True)
        pods = [child.pod_name for task in latest for child in task.child_tasks or ()]
        logs = (self.log(run_id, pod) for pod in dict.fromkeys(filter(None, pods)))
        return next(filter(None, map(RunEnding.in_log, filter(None, logs))), None)

    def log(self, run_id: str, pod: str) -> str | None:
        """Returns the log of a pod, by the path that Kubeflow's own UI asks; None for none."""
        found = self._asked(f"/apis/v1alpha1/runs/{run_id}/nodes/{pod}/log")
        # Kubeflow 2.17 answers 200 before it looks, and then writes an error in place of a log.
        return None if found.startswith(_NO_LOG) else found

    def pods(self, run_id: str) -> list[StepPod]:
        """Returns the pods of a run, as far as the service knows them.

        The API of today has none of what Kubernetes says of a pod. That of version 1 has the
        workflow, in which Argo notes what the scheduler and the kubelet say of a pending one.
        """
        try:
            answer = json.loads(self._asked(f"/apis/v1beta1/runs/{run_id}"))
            workflow = json.loads(answer["pipeline_runtime"]["workflow_manifest"])
            nodes = workflow["status"]["nodes"].values()
        except (KeyError, TypeError, ValueError):  # before the first pod, or nodes are compressed
            return []
        return [
            StepPod(
                _step_of(node["name"]),
                _pod_of(workflow.get("metadata", {}), node),
                ".executor(" in node["name"],
                node.get("phase", ""),
                node.get("message", ""),
            )
            for node in nodes
            if node.get("type") == "Pod"
        ]

    def _asked(self, path: str) -> str:
        """Returns the server's answer for a path that its client has no method for, or ''."""
        try:
            found = self.client.runs.api_client.call_api(
                path,
                "GET",
                response_type="object",
                auth_settings=["Bearer"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=ANSWER_S,
            )
        except (kfp_server_api.ApiException, urllib3.exceptions.HTTPError, OSError):
            return ""
        return bytes(found.data).decode(errors="replace")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what the client raises into one message."""
        place = self._place
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # kfp.Client names its oldest server
                yield
        except kfp_server_api.ApiException as error:
            raise SubmissionFailed(
                f"{place} answered {error.status} {error.reason}: {error.body}"
            ) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            hint = "" if self.endpoint else "; give its address with --set endpoint=URL"
            reason = getattr(error, "reason", error)
            raise SubmissionFailed(f"cannot reach {place}: {reason}{hint}") from None


def _step_of(node: str) -> str:
    """Returns the step of a pod, by the name of its node: WORKFLOW.root.GROUP.STEP.executor(0)."""
    parts = [part.partition("(")[0].removesuffix("-driver") for part in node.split(".")]
    return next((part for part in reversed(parts) if part not in ("executor", "")), node)


def _pod_of(workflow: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """Returns the name of a node's pod, as Kubeflow's API server derives it (`RetrievePodName`)."""
    names = workflow.get("annotations", {}).get("workflows.argoproj.io/pod-name-format")
    key = str(node.get("id", ""))
    if names == "v1":
        return key
    return f"{workflow.get('name')}-{node.get('templateName')}-{key.rpartition('-')[2]}"


class _Course:
    """What was seen of a run under way, and what was said of it."""

    def __init__(self, run_id: str, say: Callable[[str], None]) -> None:
        self._run_id = run_id
        self._say = say
        self._state = ""
        self._pods: list[StepPod] = []
        self._waiting: dict[str, str] = {}  # why steps have not started, at the last look
        self._told = set[str]()  # steps of which that was said
        self._heard = set[str]()  # pods whose log the service has read while they ran
        self._silent = 0

    def look(self, run: kfp_server_api.V2beta1Run, pods: list[StepPod]) -> None:
        """Takes what the service says, and says what is new."""
        waiting = {pod.step: pod.message for pod in pods if pod.waits}
        # Nearly every pod waits for a moment.
        for step in waiting.keys() & self._waiting.keys() - self._told:
            self._say(f"{step} has not started: {waiting[step]}")
            self._told.add(step)
        if run.state != self._state:
            self._state = run.state or ""
            why = getattr(run.error, "message", None)
            said = (self._run_id, self._state.lower() or "pending", why)
            self._say(": ".join(filter(None, said)))
        if run.state not in ENDED:
            self._waiting, self._pods = waiting, pods or self._pods

    def silences(self, running: str, log: str | None) -> int:
        """Returns how many looks in a row have found a running pod, and no log of it.

        Only a pod whose log was read before can lose it: many a service may read what is archived
        of steps that have ended, and no log of one that runs.
        """
        if log is not None:
            self._heard.add(running)
        self._silent = self._silent + 1 if log is None and running in self._heard else 0
        return self._silent

    @property
    def failure(self) -> str:
        """Why it failed, by what Kubernetes said of steps that had not started."""
        # A step that its deadline has ended waits no more, and no exit task tells of it.
        late = [
            f"{step} has not started: {why}"
            for step, why in self._waiting.items()
            if step in self._told
        ]
        return f"{self._state.lower()}: {'; '.join(late) or 'see its steps in the Kubeflow UI'}"

    @property
    def seen(self) -> str:
        """What was seen last, for the end of a sentence."""
        steps = {pod.step: pod.phase.lower() for pod in self._pods if pod.works}
        words = (self._state.lower() or "pending", *(f"{step} {steps[step]}" for step in steps))
        return f"; seen last: {', '.join(words)}"


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Has nobody log meanwhile: what fails is raised."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _listed(ask: Callable[..., Any], what: str, experiment_id: str) -> Iterator[Any]:
    """Yields all of a list, whose pages are each asked for with the token of the one before."""
    token = ""
    while True:
        page = ask(page_token=token, page_size=_PAGE, experiment_id=experiment_id)
        yield from getattr(page, what) or ()
        token = page.next_page_token
        if not token:
            return


class KubeflowSchedules:
    """The recurring runs of one name."""

    def __init__(self, server: KubeflowServer, name: str) -> None:
        """Takes where they are, and their name."""
        self._server = server
        self._name = name

    def replace(
        self, body: Callable[..., Any], *, wait: bool, say: Callable[[str], None]
    ) -> list[str]:
        """Creates a recurring run in place of those of the same name.

        Kubeflow cannot change one. The old ones are paused first, so that they never fire together
        with the new one, and go on where that is refused. With one, Kubernetes would delete the
        runs that it has begun: while one of them is active it is only left paused.
        """
        server, disabled = self._server, []
        with server.explained():
            experiment = server.experiment_id()
            old = server.recurring_runs(self._name, experiment)
        paused = bool(old) and not _fires(old[-1])
        try:
            with server.explained():
                for each in old:
                    if _fires(each):
                        server.client.disable_recurring_run(each.recurring_run_id)
                        disabled.append(each)
            if wait:
                await_end(functools.partial(self._active_of, old, experiment), say)
            with server.explained():
                new = server.client.recurring_runs.recurring_run_service_create_recurring_run(
                    recurring_run=body(experiment, paused=paused)
                )
        except BaseException:
            with server.explained():
                for each in disabled:
                    server.client.enable_recurring_run(each.recurring_run_id)
            raise
        made = [f"Recurring run: {self._name} {new.recurring_run_id}"]
        if paused:
            made.append(f"note: it is paused; {command('pipeline', 'resume', self._name)}")
        return [*made, *(self._removed(each.recurring_run_id, experiment) for each in old)]

    def pause(self) -> list[str]:
        """Has them fire no more; runs under way go on."""
        return self._each("disable_recurring_run", "paused")

    def resume(self) -> list[str]:
        """Has the newest fire again, at its next time."""
        return self._each("enable_recurring_run", "resumed", newest=True)

    def _each(self, call: str, word: str, *, newest: bool = False) -> list[str]:
        server, said = self._server, []
        with server.explained():
            experiment = server.experiment_id()
            found = server.recurring_runs(self._name, experiment)
            if not found:
                raise UserError(
                    f"there is no recurring run {self._name!r} in the experiment "
                    f"{server.experiment!r}; --set experiment=NAME names another"
                )
            # Of several, all but the newest wait for runs of theirs to end, and are to be deleted.
            for each in found[-1:] if newest else found:
                getattr(server.client, call)(each.recurring_run_id)
                active = server.active_runs(each.recurring_run_id, experiment)
                said.append(f"{word}: {self._name} {each.recurring_run_id}{_going_on(active)}")
        return said

    def _active_of(self, old: list[Any], experiment: str) -> list[str]:
        """Returns the ids of the runs of some recurring runs that have not ended."""
        with self._server.explained():
            return [
                run
                for each in old
                for run in self._server.active_runs(each.recurring_run_id, experiment)
            ]

    def _removed(self, recurring_run: str, experiment: str) -> str:
        server = self._server
        with server.explained():
            active = server.active_runs(recurring_run, experiment)
            if not active:
                server.client.delete_recurring_run(recurring_run)
                return f"replaces {recurring_run}"
        return (
            f"replaces {recurring_run}, which stays paused{_going_on(active)}: deleting it would "
            "end them; schedule again later, or with --wait, to delete it"
        )


def _fires(recurring_run: kfp_server_api.V2beta1RecurringRun) -> bool:
    return recurring_run.status in (None, "ENABLED")


def _going_on(active: list[str]) -> str:
    return (
        f"; {count(len(active), 'run')} of it still active: {', '.join(active)}" if active else ""
    )


class Kubeflow:
    """A Kubeflow Pipelines installation, which is connected to when something is sent."""

    def __init__(self, job: Job) -> None:
        """Takes the job that is about to be submitted."""
        self._job = job
        self._server = KubeflowServer(job.settings)
        self._run_id = ""

    def planned(self) -> str:
        """Returns the request that `submit` would send.

        The id of the experiment is the one thing that only the cluster knows.
        """
        return self._request("runs", self._run(self._unknown_experiment))

    def planned_schedule(self, cron: Cron, max_concurrent: int) -> str:
        """Returns the request that `schedule` would send to create the recurring run."""
        body = self._recurring_run(cron, max_concurrent, self._unknown_experiment)
        return self._request("recurringruns", body)

    def submit(self, *, create: bool = False) -> str:  # noqa: ARG002 - nothing is created
        """Starts a run and returns its page in the UI, or its id where no endpoint is given."""
        with self._server.explained():
            body = self._run(self._server.experiment_id())
            self._run_id = str(self._server.client.runs.run_service_create_run(run=body).run_id)
        host = self._server.endpoint
        return f"{host.rstrip('/')}/#/runs/details/{self._run_id}" if host else self._run_id

    def schedule(
        self,
        cron: Cron,
        max_concurrent: int,
        *,
        wait: bool,
        say: Callable[[str], None],
        create: bool = False,  # noqa: ARG002 - nothing is created
    ) -> str:
        """Creates a recurring run in place of those of the same name, ending no run of theirs."""
        body = functools.partial(self._recurring_run, cron, max_concurrent)
        schedules = KubeflowSchedules(self._server, self._job.name)
        return "\n".join(schedules.replace(body, wait=wait, say=say))

    def ending(self) -> RunEnding | None:
        """Returns how the submitted run ended, as its exit task told it, or None."""
        return self._server.ending(self._run_id)

    @property
    def run_id(self) -> str:
        """What the service calls the submitted run."""
        return self._run_id

    def wait(self, say: Callable[[str], None], poll_s: float = 10.0) -> str | None:
        """Returns, at its end, why the submitted run failed, or None.

        Raises:
            RunGone: Somebody has deleted it, or its workflow, of which Kubeflow learns nothing.
        """
        server, course = self._server, _Course(self._run_id, say)
        while True:
            run = patiently(functools.partial(server.run, self._run_id), say, poll_s)
            if run is None:
                raise RunGone(f"the run {self._run_id} was deleted{course.seen}")
            pods = server.pods(self._run_id)
            course.look(run, pods)
            if run.state in ENDED:
                return None if run.state == "SUCCEEDED" else course.failure
            active = next((pod.name for pod in pods if pod.phase == "Running"), "")
            log = server.log(self._run_id, active) if active else None
            if course.silences(active, log) * poll_s >= _GONE_S:
                raise RunGone(
                    f"the workflow of the run {self._run_id} was deleted: Kubeflow calls it "
                    f"running, and its pod {active} has had no log for {_GONE_S:g} s{course.seen}"
                )
            time.sleep(poll_s)

    def _run(self, experiment_id: str) -> kfp_server_api.V2beta1Run:
        """Returns the body of the request that creates a run."""
        return kfp_server_api.V2beta1Run(**self._shared(experiment_id))

    def _recurring_run(
        self, cron: Cron, max_concurrent: int, experiment_id: str, *, paused: bool = False
    ) -> kfp_server_api.V2beta1RecurringRun:
        """Returns the body of the request that creates a recurring run.

        Runs that were missed while the cluster was down are not caught up with.
        """
        mode = kfp_server_api.RecurringRunMode
        schedule = kfp_server_api.V2beta1CronSchedule(cron=cron.sent(Target.KFP))
        return kfp_server_api.V2beta1RecurringRun(
            mode=mode.DISABLE if paused else mode.ENABLE,
            trigger=kfp_server_api.V2beta1Trigger(cron_schedule=schedule),
            max_concurrency=str(max_concurrent),
            no_catchup=True,
            **self._shared(experiment_id),
        )

    def _shared(self, experiment_id: str) -> dict[str, Any]:
        job = self._job
        spec, *platform = yaml.safe_load_all(job.package)
        if platform:
            spec = {"pipeline_spec": spec, "platform_spec": platform[0]}
        return {
            "display_name": job.name,
            "experiment_id": experiment_id,
            "pipeline_spec": spec,
            "runtime_config": kfp_server_api.V2beta1RuntimeConfig(
                parameters=dict(job.arguments), pipeline_root=job.settings.pipeline_root
            ),
            "service_account": job.settings.service_account,
        }

    @property
    def _unknown_experiment(self) -> str:
        name = self._server.experiment
        return f"<id of the experiment {name!r}, which is created when it is missing>"

    def _request(self, kind: str, body: Any) -> str:
        host = (self._server.endpoint or "<address of ml-pipeline>").rstrip("/")
        plain = kfp_server_api.ApiClient().sanitize_for_serialization(body)
        return as_text(Request(f"{host}{_API}/{kind}", plain))
