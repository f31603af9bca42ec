"""Vertex AI target: runs and schedules on Vertex AI Pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from google.cloud import aiplatform
from google.cloud.aiplatform_v1 import types
from google.protobuf import json_format

from orbax_bench_pipelines.cron import Cron, for_vertex
from orbax_bench_pipelines.targets.job import Job, Request
from orbax_bench_pipelines.targets.vertex_service import (
    VertexSchedules,
    connect,
    creating_nothing,
    explained,
    host_of,
    require_bucket,
    require_reachable,
)

_ARTIFACTS: Final = "pipeline_root"
"""Folder for artifacts below an output directory."""
_FAILED = (types.PipelineState.PIPELINE_STATE_FAILED, types.PipelineState.PIPELINE_STATE_CANCELLED)


class Vertex:
    """Vertex AI Pipelines in one project and location."""

    def __init__(self, job: Job, *, dry: bool = False) -> None:
        """Sets the client up; nothing is sent."""
        self._job = job
        settings = job.settings
        connect(settings, dry=dry)
        with explained(settings), job.package_file() as package:
            self._pipeline_job = aiplatform.PipelineJob(
                display_name=job.name,
                template_path=package,
                parameter_values=dict(job.arguments),
                pipeline_root=self._root,
                labels=dict(settings.labels) or None,
                encryption_spec_key_name=settings.encryption_key,
            )

    def planned(self) -> list[Request]:
        """Returns what `submit` would send to create the run."""
        body = self._pipeline_job._gca_resource  # noqa: SLF001 - what submit sends
        self._run_as(body)
        query = f"pipelineJobId={self._pipeline_job.job_id}"
        return [Request("POST", f"{self._url}/pipelineJobs?{query}", _plain(body))]

    def planned_schedule(self, cron: Cron, max_concurrent: int) -> list[Request]:
        """Returns what `schedule` would send where there is no schedule of that name yet."""
        return [
            Request("POST", f"{self._url}/schedules", _plain(self._schedule(cron, max_concurrent)))
        ]

    def submit(self, *, create: bool = False) -> str:
        """Starts a run, associated with the experiment if one is given.

        With `create`, the bucket for artifacts is made where there is none.
        """
        settings = self._job.settings
        made = self._ready(create=create)
        with explained(self._job.settings), creating_nothing():
            if settings.tensorboard is not None:
                experiment = aiplatform.Experiment.get_or_create(settings.experiment)
                experiment.assign_backing_tensorboard(settings.tensorboard)
            self._pipeline_job.submit(
                service_account=settings.service_account,
                network=settings.network,
                experiment=settings.experiment,
            )
        return "\n".join(filter(None, [self._pipeline_job.resource_name, self._link, made]))

    def _ready(self, *, create: bool) -> str:
        """Checks that what a run needs is there; returns what was created."""
        require_reachable(self._job.settings)
        return require_bucket(self._job.settings, self._root, create=create)

    def schedule(
        self,
        cron: Cron,
        max_concurrent: int,
        *,
        wait: bool,
        say: Callable[[str], None],
        create: bool = False,
    ) -> str:
        """Creates a schedule, or changes the one of the same name in place."""
        made = self._ready(create=create)
        if made:
            say(made)
        schedules = VertexSchedules(self._job.settings, self._job.name)
        changed = schedules.change(self._schedule(cron, max_concurrent), wait=wait, say=say)
        if changed:
            return "\n".join(changed)
        with explained(self._job.settings):
            new = self._pipeline_job.create_schedule(
                cron=for_vertex(cron),
                display_name=self._job.name,
                max_concurrent_run_count=max_concurrent,
                service_account=self._job.settings.service_account,
                network=self._job.settings.network,
            )
        return f"Schedule created: {self._job.name} {new.resource_name}"

    def wait(self, say: Callable[[str], None], poll_s: float = 30.0) -> str | None:
        """Returns, at its end, why the run failed, or None."""
        job, shown = self._pipeline_job, None
        while True:
            with explained(self._job.settings):
                state = job.state
            if state != shown:
                shown = state
                say(f"{job.job_id}: {_word(state)}")
            if state == types.PipelineState.PIPELINE_STATE_SUCCEEDED:
                return None
            if state in _FAILED:
                return f"{_word(state)}: {job.to_dict().get('error') or 'see ' + self._link}"
            time.sleep(poll_s)

    @property
    def _link(self) -> str:
        """The page of the run in the Google Cloud console."""
        settings = self._job.settings
        return (
            "https://console.cloud.google.com/vertex-ai/locations/"
            f"{settings.location}/pipelines/runs/{self._pipeline_job.job_id}"
            f"?project={settings.project}"
        )

    @property
    def _root(self) -> str:
        """Where Vertex AI puts artifacts: beside the runs, where nothing else is said.

        Its client would otherwise take, or make, a bucket that nobody named.
        """
        below = str(self._job.arguments["output_directory"]).rstrip("/")
        return self._job.settings.pipeline_root or f"{below}/{_ARTIFACTS}"

    @property
    def _url(self) -> str:
        settings = self._job.settings
        return f"{host_of(settings)}/v1/projects/{settings.project}/locations/{settings.location}"

    def _schedule(self, cron: Cron, max_concurrent: int) -> types.Schedule:
        """Returns the schedule that `PipelineJob.create_schedule` would create."""
        made = aiplatform.PipelineJobSchedule(
            pipeline_job=self._pipeline_job, display_name=self._job.name
        )
        schedule = made._gca_resource  # noqa: SLF001 - what create_schedule sends
        schedule.cron = for_vertex(cron)
        schedule.max_concurrent_run_count = max_concurrent
        self._run_as(schedule.create_pipeline_job_request.pipeline_job)
        return schedule

    def _run_as(self, body: types.PipelineJob) -> None:
        """Gives a job what `submit` takes beside it."""
        settings = self._job.settings
        if settings.service_account:
            body.service_account = settings.service_account
        if settings.network:
            body.network = settings.network


def _word(state: types.PipelineState) -> str:
    return str(state.name).removeprefix("PIPELINE_STATE_").lower()


def _plain(message: Any) -> Any:
    """Returns a message of the API as JSON."""
    return json_format.MessageToDict(type(message).pb(message))
