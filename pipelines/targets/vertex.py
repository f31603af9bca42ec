"""Vertex AI target: runs and schedules on Vertex AI Pipelines in one project and location."""

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import google.auth
import google.auth.exceptions
import requests
from etils import epath
from google.api_core import exceptions as api_exceptions
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.transport import requests as auth_requests
from google.cloud import aiplatform, storage
from google.cloud.aiplatform.metadata import constants
from google.cloud.aiplatform.utils import gcs_utils
from google.cloud.aiplatform_v1 import types
from google.protobuf import field_mask_pb2, json_format

from orbax_bench_core.engine import RunEnding
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.files import read_at_most
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

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_ARTIFACTS: Final = "pipeline_root"
"""Folder for artifacts below an output directory."""
_CONTEXTS: Final = "metadataStores/default/contexts"
_BOARD: Final = constants._BACKING_TENSORBOARD_RESOURCE_KEY  # noqa: SLF001 - what the client sends
_FAILED = (types.PipelineState.PIPELINE_STATE_FAILED, types.PipelineState.PIPELINE_STATE_CANCELLED)
_UPDATED = ("cron", "create_pipeline_job_request", "max_concurrent_run_count", "allow_queueing")
_CHANGEABLE = (types.Schedule.State.ACTIVE, types.Schedule.State.PAUSED)
_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


def connect(settings: Settings, *, dry: bool = False) -> None:
    """Sets Google's client up; to Vertex AI nothing is sent."""
    logging.getLogger("google.cloud.aiplatform").setLevel(logging.WARNING)  # it prints code
    plain = settings.endpoint is not None and settings.endpoint.startswith("http://")
    with explained(settings):
        aiplatform.init(
            project=settings.project,
            location=settings.location,
            credentials=AnonymousCredentials() if dry or plain else _credentials(settings),
            api_endpoint=settings.endpoint,
            api_transport="rest" if plain else None,
        )


def _credentials(settings: Settings) -> Credentials:
    """Returns the credentials of this machine, with a token: clients wait for one for minutes."""

    def ask() -> Credentials:
        found: Credentials = google.auth.default(_SCOPES)[0]
        # Its own timeout ends the thread; `answered` tells of it first.
        found.refresh(functools.partial(auth_requests.Request(), timeout=2 * ANSWER_S))
        return found

    return answered(ask, f"the token service for {place_of(settings)}")


def place_of(settings: Settings) -> str:
    """Returns where it is, in words."""
    return f"Vertex AI in {settings.project}, {settings.location}"


def host_of(settings: Settings) -> str:
    """Returns the address that is asked, with its scheme."""
    endpoint = settings.endpoint or f"{settings.location}-aiplatform.googleapis.com"
    return (endpoint if "://" in endpoint else f"https://{endpoint}").rstrip("/")


def require_reachable(settings: Settings) -> None:
    """Fails where nothing answers; the client would wait for minutes."""
    require_answer(place_of(settings), host_of(settings))


def require_bucket(settings: Settings, root: str, *, create: bool) -> str:
    """Checks that the bucket for artifacts is there; returns what was created, in words.

    The client of Vertex AI would create it on a submission, and open it to an account.
    """
    account = settings.service_account or "the default service account of Compute Engine"
    name = root.removeprefix("gs://").partition("/")[0]
    config = aiplatform.initializer.global_config
    client = storage.Client(project=settings.project, credentials=config.credentials)
    with explained(settings):
        soon = storage.retry.DEFAULT_RETRY.with_timeout(ANSWER_S)
        if client.bucket(name).exists(timeout=ANSWER_S, retry=soon):
            return ""
        made = (
            f"gs://{name} in {settings.project}, {settings.location}, with "
            f"roles/storage.objectCreator and roles/storage.objectViewer for {account}"
        )
        if not create:
            raise SubmissionFailed(
                f"the bucket of pipeline_root={root} does not exist; make it, or have it made by "
                f"--create: {made}"
            )
        gcs_utils.create_gcs_bucket_for_pipeline_artifacts_if_it_does_not_exist(
            output_artifacts_gcs_dir=root,
            service_account=settings.service_account,
            project=settings.project,
            location=settings.location,
        )
    return f"created {made}"


@contextlib.contextmanager
def creating_nothing() -> Iterator[None]:
    """Keeps the client of Vertex AI from creating a bucket; the submitter has looked for it.

    Of an existing bucket it would ask who owns it, which needs rights of its own.
    """
    name = "create_gcs_bucket_for_pipeline_artifacts_if_it_does_not_exist"
    theirs = getattr(gcs_utils, name)
    setattr(gcs_utils, name, lambda **_: None)
    try:
        yield
    finally:
        setattr(gcs_utils, name, theirs)


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turns what the client raises into one message."""
    place = place_of(settings)
    try:
        yield
    except google.auth.exceptions.GoogleAuthError as error:
        raise SubmissionFailed(
            f"no credentials for {place}: {error}; run `gcloud auth application-default login`"
        ) from None
    except api_exceptions.GoogleAPIError as error:
        raise SubmissionFailed(f"{place} refused: {error}") from None
    except (requests.JSONDecodeError, json_format.ParseError):
        raise SubmissionFailed(
            f"{place}: what answers is something else, perhaps a page for signing in"
        ) from None
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None
    except (OSError, RuntimeError) as error:
        raise SubmissionFailed(f"{place}: {error}") from None


class VertexSchedules:
    """The schedules of one name, of which the newest that has not ended counts."""

    def __init__(self, settings: Settings, name: str) -> None:
        """Sets the client up; to Vertex AI nothing is sent."""
        connect(settings)
        self._settings = settings
        self._name = name

    def change(
        self, schedule: types.Schedule, *, wait: bool, say: Callable[[str], None]
    ) -> list[str]:
        """Changes the schedule in place; returns lines for people, and none if there is none."""
        with explained(self._settings):
            existing = self._existing()
            if existing is None:
                return []
            paused = existing.state is types.Schedule.State.PAUSED
            with _paused(existing) if wait and not paused else contextlib.nullcontext():
                if wait:
                    await_end(functools.partial(self._active, existing), say)
                active = [] if wait else self._active(existing)
                # PipelineJobSchedule.update changes when a schedule fires, but not what it runs.
                schedule.name = existing.resource_name
                existing.api_client.update_schedule(
                    schedule=schedule, update_mask=field_mask_pb2.FieldMask(paths=_UPDATED)
                )
        said = [f"Schedule updated: {self._name} {existing.resource_name}"]
        if active:
            said.append(
                f"note: {count(len(active), 'run')} of it still active, as it was before: "
                + ", ".join(active)
            )
        if paused:
            said.append(f"note: it is paused; {command('pipeline', 'resume', self._name)}")
        return said

    def pause(self) -> list[str]:
        """Has it fire no more; runs under way go on."""
        with explained(self._settings):
            schedule = self._required()
            if schedule.state is not types.Schedule.State.PAUSED:
                schedule.pause()
            active = self._active(schedule)
        going = f"; {count(len(active), 'run')} still active: {', '.join(active)}" if active else ""
        return [f"paused: {self._name} {schedule.resource_name}{going}"]

    def resume(self) -> list[str]:
        """Has it fire again, at its next time; what it missed is not caught up with."""
        with explained(self._settings):
            schedule = self._required()
            if schedule.state is types.Schedule.State.PAUSED:
                schedule.resume(catch_up=False)
        return [f"resumed: {self._name} {schedule.resource_name}"]

    def _required(self) -> Any:
        require_reachable(self._settings)
        found = self._existing()
        if found is None:
            raise UserError(f"there is no schedule {self._name!r} that is active or paused")
        return found

    def _existing(self) -> Any:
        found = aiplatform.PipelineJobSchedule.list(
            filter=f'display_name="{self._name}"', order_by="create_time desc"
        )
        return next((each for each in found if each.state in _CHANGEABLE), None)

    def _active(self, schedule: Any) -> list[str]:
        others = " AND ".join(f'state!="PIPELINE_STATE_{state}"' for state in _ENDED)
        found = schedule.list_jobs(
            filter=f'schedule_name="{schedule.resource_name}" AND {others}',
            enable_simple_view=False,  # the simple view warns in a way that Python deprecates
        )
        return [
            str(job.gca_resource.name.rpartition("/")[2])
            for job in found
            if job.gca_resource.state.name.removeprefix("PIPELINE_STATE_") not in _ENDED
        ]


@contextlib.contextmanager
def _paused(schedule: Any) -> Iterator[None]:
    """Has a schedule not fire meanwhile."""
    schedule.pause()
    try:
        yield
    finally:
        schedule.resume(catch_up=False)


class Vertex:
    """Vertex AI Pipelines in one project and location."""

    def __init__(self, job: Job, *, dry: bool = False) -> None:
        """Sets the client up; to Vertex AI nothing is sent."""
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

    def planned(self) -> str:
        """Returns the requests by which `submit` creates the run, and adds it to its experiment.

        Of an experiment that exists, only the last of its requests is sent.
        """
        body = self._pipeline_job._gca_resource  # noqa: SLF001 - what submit sends
        self._run_as(body)
        job = self._request(f"pipelineJobs?pipelineJobId={self._pipeline_job.job_id}", body)
        if self._job.settings.experiment is None:
            return as_text(job)
        experiment, its_run = self._experiment_requests(self._job.settings.experiment)
        return as_text(*experiment, job, its_run)

    def _experiment_requests(self, name: str) -> tuple[list[Request], Request]:
        """Returns the requests that make an experiment, and that put a run into it.

        It is what the client's `Experiment.get_or_create` and `PipelineJob.submit` send.
        """
        made = types.Context(
            display_name=name,
            schema_title=constants.SYSTEM_EXPERIMENT,
            schema_version=constants.SCHEMA_VERSIONS[constants.SYSTEM_EXPERIMENT],
            metadata=constants.EXPERIMENT_METADATA,
        )
        requests = [self._request(f"{_CONTEXTS}?contextId={name}", made)]
        there, board = f"{_CONTEXTS}/{name}", self._job.settings.tensorboard
        if board is not None:
            metadata = {**constants.EXPERIMENT_METADATA, _BOARD: board}
            changed = types.Context(made, metadata=metadata)
            requests.append(self._request(there, changed)._replace(method="PATCH"))
        child = self._place(f"{_CONTEXTS}/<context of the run, which Vertex AI names>")
        added = types.AddContextChildrenRequest(child_contexts=[child])
        return requests, self._request(f"{there}:addContextChildren", added)

    def planned_schedule(self, cron: Cron, max_concurrent: int) -> str:
        """Returns the request with which `schedule` would create a schedule of a new name."""
        return as_text(self._request("schedules", self._schedule(cron, max_concurrent)))

    def submit(self, *, create: bool = False) -> str:
        """Starts a run, associated with the experiment if one is given.

        With `create`, the bucket for artifacts is made where there is none.
        """
        settings = self._job.settings
        made = self._ready(create=create)
        with explained(settings), creating_nothing():
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
                cron=cron.sent(Target.VERTEX),
                display_name=self._job.name,
                max_concurrent_run_count=max_concurrent,
                service_account=self._job.settings.service_account,
                network=self._job.settings.network,
            )
        return f"Schedule created: {self._job.name} {new.resource_name}"

    def ending(self) -> RunEnding | None:
        """Returns how the submitted run ended, as its exit task told it, or None."""
        return ending_of(self._pipeline_job, self._job.settings)

    @property
    def run_id(self) -> str:
        """What the service calls the submitted run."""
        return str(self._pipeline_job.job_id)

    def wait(self, say: Callable[[str], None], poll_s: float = 30.0) -> str | None:
        """Returns, at its end, why the run failed, or None.

        Raises:
            RunGone: Somebody has deleted it.
        """
        job, shown = self._pipeline_job, None
        while True:
            state = patiently(self._state, say, poll_s)
            if state is None:
                seen = f"; seen last: {_word(shown)}" if shown else ""
                raise RunGone(f"the run {job.job_id} was deleted{seen}")
            if state != shown:
                shown = state
                say(f"{job.job_id}: {_word(state)}")
            if state == types.PipelineState.PIPELINE_STATE_SUCCEEDED:
                return None
            if state in _FAILED:
                return f"{_word(state)}: {job.to_dict().get('error') or 'see ' + self._link}"
            time.sleep(poll_s)

    def _state(self) -> types.PipelineState | None:
        """Returns the state of the submitted run, or None if it was deleted."""
        with explained(self._job.settings):
            try:
                return self._pipeline_job.state
            except api_exceptions.NotFound:
                return None

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

    def _request(self, what: str, message: Any) -> Request:
        body = json_format.MessageToDict(type(message).pb(message))
        return Request(f"{host_of(self._job.settings)}/v1/{self._place(what)}", body)

    def _place(self, what: str) -> str:
        settings = self._job.settings
        return f"projects/{settings.project}/locations/{settings.location}/{what}"

    def _schedule(self, cron: Cron, max_concurrent: int) -> types.Schedule:
        """Returns the schedule that `PipelineJob.create_schedule` would create."""
        made = aiplatform.PipelineJobSchedule(
            pipeline_job=self._pipeline_job, display_name=self._job.name
        )
        schedule = made._gca_resource  # noqa: SLF001 - what create_schedule sends
        schedule.cron = cron.sent(Target.VERTEX)
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


def ending(settings: Settings, run_id: str) -> RunEnding | None:
    """Returns how a run ended, as its exit task told it, or None."""
    connect(settings)
    require_reachable(settings)
    with explained(settings):
        job = aiplatform.PipelineJob.get(run_id)
    return ending_of(job, settings)


def ending_of(job: aiplatform.PipelineJob, settings: Settings) -> RunEnding | None:
    """Returns how a job ended, by the artifacts of its exit task, or None.

    The page is the artifact `verdicts_report`, or, of a run that nobody judged, `report`, if this
    machine can read it.
    """
    with explained(settings):
        tasks = [task for task in job.task_details if task.task_name == "finish"]
    outputs = {name: each for task in tasks for name, each in task.outputs.items()}
    artifacts = {name: each.artifacts[0] for name, each in outputs.items() if each.artifacts}
    if "ending" not in artifacts:
        return None
    told = RunEnding.in_metadata(dict(artifacts["ending"].metadata or {}))
    for name in ("verdicts_report", "report"):
        if told is not None and name in artifacts:
            # Of a run that nobody judged there is no file.
            with contextlib.suppress(OSError, ImportError, ValueError):
                page = read_at_most(epath.Path(artifacts[name].uri))
                return RunEnding.of(told.state, told.reasons, told.directory, page)
    return told


def _word(state: types.PipelineState) -> str:
    return str(state.name).removeprefix("PIPELINE_STATE_").lower()
