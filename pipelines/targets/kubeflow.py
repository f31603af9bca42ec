"""Kubeflow target: runs and recurring runs on Kubeflow Pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import kfp_server_api
import yaml

from orbax_bench_pipelines.cron import Cron, for_kubeflow
from orbax_bench_pipelines.targets.job import Job, Request
from orbax_bench_pipelines.targets.kubeflow_server import ENDED, KubeflowSchedules, KubeflowServer

_API = "/apis/v2beta1"


def run_body(job: Job, experiment_id: str) -> kfp_server_api.V2beta1Run:
    """Returns the body of the request that creates a run."""
    return kfp_server_api.V2beta1Run(
        display_name=job.name, experiment_id=experiment_id, **_shared(job)
    )


def recurring_run_body(
    job: Job, experiment_id: str, cron: Cron, max_concurrent: int, *, paused: bool = False
) -> kfp_server_api.V2beta1RecurringRun:
    """Returns the body of the request that creates a recurring run.

    Runs that were missed while the cluster was down are not caught up with.
    """
    mode = kfp_server_api.RecurringRunMode
    trigger = kfp_server_api.V2beta1Trigger(
        cron_schedule=kfp_server_api.V2beta1CronSchedule(cron=for_kubeflow(cron))
    )
    return kfp_server_api.V2beta1RecurringRun(
        display_name=job.name,
        experiment_id=experiment_id,
        mode=mode.DISABLE if paused else mode.ENABLE,
        trigger=trigger,
        max_concurrency=str(max_concurrent),
        no_catchup=True,
        **_shared(job),
    )


def _shared(job: Job) -> dict[str, Any]:
    documents = list(yaml.safe_load_all(job.package))
    spec = documents[0]
    if len(documents) > 1:
        spec = {"pipeline_spec": documents[0], "platform_spec": documents[1]}
    return {
        "pipeline_spec": spec,
        "runtime_config": kfp_server_api.V2beta1RuntimeConfig(
            parameters=dict(job.arguments), pipeline_root=job.settings.pipeline_root
        ),
        "service_account": job.settings.service_account,
    }


class Kubeflow:
    """A Kubeflow Pipelines installation, which is connected to when something is sent."""

    def __init__(self, job: Job) -> None:
        """Takes the job that is about to be submitted."""
        self._job = job
        self._server = KubeflowServer(job.settings)
        self._run_id = ""

    def planned(self) -> list[Request]:
        """Returns what `submit` would send.

        The id of the experiment is the one thing that only the cluster knows.
        """
        return [self._request("runs", run_body(self._job, self._unknown_experiment))]

    def planned_schedule(self, cron: Cron, max_concurrent: int) -> list[Request]:
        """Returns what `schedule` would send to create the recurring run."""
        body = recurring_run_body(self._job, self._unknown_experiment, cron, max_concurrent)
        return [self._request("recurringruns", body)]

    def submit(self, *, create: bool = False) -> str:  # noqa: ARG002 - nothing is created
        """Starts a run and returns its page in the UI, or its id where no endpoint is given."""
        with self._server.explained():
            body = run_body(self._job, self._server.experiment_id())
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

        def body(experiment: str, paused: bool) -> Any:
            return recurring_run_body(self._job, experiment, cron, max_concurrent, paused=paused)

        schedules = KubeflowSchedules(self._server, self._job.name)
        return "\n".join(schedules.replace(body, wait=wait, say=say))

    def wait(self, say: Callable[[str], None], poll_s: float = 10.0) -> str | None:
        """Returns, at its end, why the submitted run failed, or None."""
        state = ""
        while True:
            with self._server.explained():
                run = self._server.client.get_run(self._run_id)
            if run.state != state:
                state = run.state or ""
                say(f"{self._run_id}: {state.lower() or 'pending'}")
            if state in ENDED:
                error = getattr(run.error, "message", None) or "see its steps in the Kubeflow UI"
                return None if state == "SUCCEEDED" else f"{state.lower()}: {error}"
            time.sleep(poll_s)

    @property
    def _unknown_experiment(self) -> str:
        name = self._server.experiment
        return f"<id of the experiment {name!r}, which is created when it is missing>"

    def _request(self, kind: str, body: Any) -> Request:
        host = (self._server.endpoint or "<address of ml-pipeline>").rstrip("/")
        plain = kfp_server_api.ApiClient().sanitize_for_serialization(body)
        return Request("POST", f"{host}{_API}/{kind}", plain)
