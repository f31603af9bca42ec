"""Kubeflow target: runs and recurring runs on Kubeflow Pipelines."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import kfp
import kfp_server_api
import urllib3.exceptions
import yaml

from orbax_bench_pipelines.cron import Cron, for_kubeflow
from orbax_bench_pipelines.targets.job import Job, Request, SubmissionFailed

TOKEN_VARIABLE = "ORBAX_BENCH_KFP_TOKEN"  # noqa: S105 - the name of a variable, not a secret
_DEFAULT_EXPERIMENT = "Default"
_ENDED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED", "ERROR")
_API = "/apis/v2beta1"


def run_body(job: Job, experiment_id: str) -> kfp_server_api.V2beta1Run:
    """Returns the body of the request that creates a run."""
    return kfp_server_api.V2beta1Run(
        display_name=job.name, experiment_id=experiment_id, **_shared(job)
    )


def recurring_run_body(
    job: Job, experiment_id: str, cron: Cron, max_concurrent: int
) -> kfp_server_api.V2beta1RecurringRun:
    """Returns the body of the request that creates a recurring run.

    Runs that were missed while the cluster was down are not caught up with.
    """
    trigger = kfp_server_api.V2beta1Trigger(
        cron_schedule=kfp_server_api.V2beta1CronSchedule(cron=for_kubeflow(cron))
    )
    return kfp_server_api.V2beta1RecurringRun(
        display_name=job.name,
        experiment_id=experiment_id,
        mode=kfp_server_api.RecurringRunMode.ENABLE,
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

    def submit(self) -> str:
        """Starts a run and returns its page in the UI, or its id where no endpoint is given.

        Raises:
            SubmissionFailed: The service refused it.
        """
        with self._explained():
            body = run_body(self._job, self._experiment_id())
            self._run_id = str(self._client.runs.run_service_create_run(run=body).run_id)
        host = self._job.settings.endpoint
        return f"{host.rstrip('/')}/#/runs/details/{self._run_id}" if host else self._run_id

    def schedule(self, cron: Cron, max_concurrent: int) -> str:
        """Creates a recurring run in place of those of the same name.

        Kubeflow cannot change one; the new one is created before the old ones are deleted, so that
        a refusal leaves everything as it was.

        Returns:
            The new recurring run and those that it replaces, for people.

        Raises:
            SubmissionFailed: The service refused it.
        """
        with self._explained():
            experiment = self._experiment_id()
            old = list(self._recurring_runs_named(self._job.name, experiment))
            body = recurring_run_body(self._job, experiment, cron, max_concurrent)
            api = self._client.recurring_runs
            new = api.recurring_run_service_create_recurring_run(recurring_run=body)
            for recurring_run in old:
                self._client.delete_recurring_run(recurring_run)
        made = f"Recurring run: {self._job.name} {new.recurring_run_id}"
        return "\n".join([made, *(f"replaces {recurring_run}" for recurring_run in old)])

    def wait(self, say: Callable[[str], None], poll_s: float = 10.0) -> str | None:
        """Waits until the submitted run has ended.

        Args:
            say: Takes a line whenever its state changes.
            poll_s: Seconds between two looks.

        Returns:
            Why it failed; None when it succeeded.

        Raises:
            SubmissionFailed: The service answers no more.
        """
        state = ""
        while True:
            with self._explained():
                run = self._client.get_run(self._run_id)
            if run.state != state:
                state = run.state or ""
                say(f"{self._run_id}: {state.lower() or 'pending'}")
            if state in _ENDED:
                error = getattr(run.error, "message", None) or "see its steps in the Kubeflow UI"
                return None if state == "SUCCEEDED" else f"{state.lower()}: {error}"
            time.sleep(poll_s)

    @functools.cached_property
    def _client(self) -> Any:
        """The endpoint, or the cluster of the kubeconfig, as `kfp.Client` finds it."""
        settings = self._job.settings
        return kfp.Client(
            host=settings.endpoint,
            namespace=settings.namespace or "kubeflow",
            existing_token=os.environ.get(TOKEN_VARIABLE),
        )

    @property
    def _unknown_experiment(self) -> str:
        experiment = self._job.settings.experiment or _DEFAULT_EXPERIMENT
        return f"<id of the experiment {experiment!r}, which is created when it is missing>"

    def _request(self, kind: str, body: Any) -> Request:
        host = (self._job.settings.endpoint or "<address of ml-pipeline>").rstrip("/")
        plain = kfp_server_api.ApiClient().sanitize_for_serialization(body)
        return Request("POST", f"{host}{_API}/{kind}", plain)

    def _experiment_id(self) -> str:
        name = self._job.settings.experiment or _DEFAULT_EXPERIMENT
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a link of its own
            experiment = self._client.create_experiment(
                name, namespace=self._job.settings.namespace
            )
        return str(experiment.experiment_id)

    def _recurring_runs_named(self, name: str, experiment_id: str) -> Iterator[str]:
        token = ""
        while True:
            page = self._client.list_recurring_runs(
                page_token=token, page_size=100, experiment_id=experiment_id
            )
            for each in page.recurring_runs or ():
                if each.display_name == name:
                    yield each.recurring_run_id
            token = page.next_page_token
            if not token:
                return

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what the client raises into one message."""
        endpoint = self._job.settings.endpoint
        place = f"Kubeflow Pipelines at {endpoint}" if endpoint else "the cluster of the kubeconfig"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # kfp.Client names its oldest server
                yield
        except kfp_server_api.ApiException as error:
            raise SubmissionFailed(
                f"{place} answered {error.status} {error.reason}: {error.body}"
            ) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            hint = "" if endpoint else "; give its address with --endpoint"
            reason = getattr(error, "reason", error)
            raise SubmissionFailed(f"cannot reach {place}: {reason}{hint}") from None
