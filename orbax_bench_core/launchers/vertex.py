"""Vertex AI custom jobs: replicas with accelerators, or the hosts of one TPU slice."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import pydantic
import yaml

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import Problem, UserError, did_you_mean
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import read_json
from orbax_bench_core.launchers.gpus import GPU_KINDS
from orbax_bench_core.launchers.kubernetes_settings import Environment
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.shipping import require_digest, require_shared, shipment
from orbax_bench_core.provenance import IMAGE

GPUS: Final = tuple(sorted(gpu.vertex for gpu in GPU_KINDS))
"""Names of GPUs in the API of Vertex AI, its `AcceleratorType`."""

_LABEL: Final = "orbax-bench-launch"
"""Label of each job, with a value of its own: whether a request that failed has created it."""

_PATIENCE_S: Final = 120.0
"""Longest time for which a request is repeated that fails for a moment."""
_ONE_REQUEST: Final[dict[str, Any]] = {"retry": None, "timeout": 60.0}
_JOB: Final = "CustomJob"
_NAME: Final = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[^/]+$")
_RESERVATION: Final = re.compile(r"projects/[^/]+/zones/[^/]+/reservations/[^/]+")
_CODE: Final = re.compile(r"non-zero status of (\d+)")

_Answer = TypeVar("_Answer")
_REQUIRED: Final = {
    "project": ("GOOGLE_CLOUD_PROJECT", "my-project"),
    "location": ("GOOGLE_CLOUD_LOCATION", "us-central1"),
}
"""Settings without which there is no job: a variable that gives each, and an example."""
_FIRST_WAIT_S: Final = 5.0
_LONGEST_WAIT_S: Final = 60.0
_GROWTH: Final = 1.5
"""The time between two looks at a job grows by this factor, as long as its state stays."""


def _reservation(name: str | None) -> str | None:
    if name is not None and not _RESERVATION.fullmatch(name):
        expected = "projects/PROJECT/zones/ZONE/reservations/NAME"
        raise ValueError(f"expected {expected}, got {name!r}")
    return name


class VertexSettings(ConfigModel):
    """Settings of a custom job of Vertex AI, which docs/launch/vertex.md explains."""

    project: str | None = None
    location: str | None = None
    machine_type: str | None = None
    accelerator_type: str | None = None
    accelerator_count: pydantic.PositiveInt | None = None
    strategy: Literal["STANDARD", "SPOT", "FLEX_START"] = "STANDARD"
    timeout_s: pydantic.PositiveInt = 86400
    max_wait_s: pydantic.PositiveInt | None = None
    reservation: Annotated[str | None, pydantic.AfterValidator(_reservation)] = None
    service_account: str | None = None
    network: str | None = None
    encryption_key: str | None = None
    labels: dict[str, str] = {}
    environment: Environment = {}
    suite_in_image: str | None = None
    endpoint: str | None = None


class Vertex:
    """Runs the command on every host of one custom job, and waits for its end.

    Replicas find each other by `CLUSTER_SPEC`, hosts of a slice by the variables of their TPUs. The
    token of the run is a file in the run directory: readers of a job see its environment.
    """

    def __init__(self, launch: Launch, settings: VertexSettings) -> None:
        """Checks what is asked for; nothing is sent."""
        found = {
            name: getattr(settings, name) or os.environ.get(variable)
            for name, (variable, _) in _REQUIRED.items()
        }
        self._settings = settings.model_copy(update=found)
        self._launch = launch
        require_shared(launch, "vertex")
        self._image = require_digest(launch, "vertex")
        self._shipment = shipment(launch, in_image=settings.suite_in_image)
        self._machine = self._machine_spec()
        problems = [
            _problem(name, f"Vertex AI needs it, such as {example}; or set {variable}")
            for name, (variable, example) in _REQUIRED.items()
            if not found[name]
        ]
        if problems:
            raise UserError(*problems)

    def shown(self) -> str:
        """Returns the job as YAML; its `jobSpec` is what `gcloud ai custom-jobs create` takes."""
        settings = self._settings
        about = f"# a custom job in {settings.project}, {settings.location}; {self._shipment.said}"
        job = yaml.safe_dump(self._job("RANDOM"), sort_keys=False, width=1000)
        return f"{about}\n{job.rstrip()}"

    def start(self) -> int:
        """Creates the job, says how it goes until it ends, and cancels it when interrupted here.

        A job that an earlier try of this step has noted and that has not ended is waited for,
        rather than started again.

        Returns:
            0 if the job succeeded.
        """
        jobs = CustomJobs(
            str(self._settings.project), str(self._settings.location), self._settings.endpoint
        )
        nonce, name = secrets.token_hex(8), noted_job(self._launch.noted)
        if name is not None and jobs.state(name).ended:
            name = None
        try:
            if name is None:
                self._shipment.send()
                name = jobs.create(self._job(nonce))
                note_job(self._launch.noted, jobs.uri(name))
            else:
                self._say("its job is still there, and is waited for")
            print(f"{name}\n{jobs.page(name)}", flush=True)
            state = self._end(jobs, name)
        except BaseException:
            self._cancel(jobs, nonce, name)
            raise
        if state.word == "succeeded":
            return 0
        if state.error:
            self._say(state.error)
        self._say(f"what the hosts said: gcloud ai custom-jobs stream-logs {name}")
        return int(Exit.INTERRUPTED) if state.word == "cancelled" else state.exit_code

    def _end(self, jobs: CustomJobs, name: str) -> VertexState:
        """Returns the last state of a job, and says each one before it."""
        shown, wait = "", _FIRST_WAIT_S
        while True:
            state = jobs.state(name)
            if state.word != shown:
                shown, wait = state.word, _FIRST_WAIT_S
                self._say(state.word)
            if state.ended:
                return state
            time.sleep(wait)
            wait = min(wait * _GROWTH, _LONGEST_WAIT_S)

    def _cancel(self, jobs: CustomJobs, nonce: str, known: str | None) -> None:
        """Cancels the job, also one of which the answer to its creation never arrived."""
        try:
            name = known or jobs.find(nonce)
            if name is not None and not jobs.state(name).ended:
                jobs.cancel(name)
                self._say(f"cancelled {name}")
        except UserError as error:
            self._say(f"could not be cancelled, look for it in the console: {error}")

    def _say(self, line: str) -> None:
        print(f"{self._launch.name}: {line}", flush=True)

    def _job(self, nonce: str) -> dict[str, Any]:
        """Returns the job as the API's JSON."""
        settings = self._settings
        key, wait_s = settings.encryption_key, settings.max_wait_s
        scheduling = {
            "timeout": f"{settings.timeout_s}s",
            "strategy": settings.strategy,
            # Replicas that are started again would join a run that has ended without them.
            "disableRetries": True,
            "restartJobOnWorkerRestart": False,
            **({} if wait_s is None else {"maxWaitDuration": f"{wait_s}s"}),
        }
        given = {"serviceAccount": settings.service_account, "network": settings.network}
        return {
            **({} if key is None else {"encryptionSpec": {"kmsKeyName": key}}),
            "displayName": self._launch.name,
            "jobSpec": {
                "workerPoolSpecs": self._pools(),
                "scheduling": scheduling,
                **{name: value for name, value in given.items() if value is not None},
            },
            "labels": {**settings.labels, _LABEL: nonce},
        }

    def _pools(self) -> list[dict[str, Any]]:
        """Returns the pools: the first has one replica, which is a whole slice of TPUs."""
        launch = self._launch
        variables = {**self._settings.environment, IMAGE: self._image}
        if launch.hosts > 1:
            variables["ORBAX_BENCH_NUM_HOSTS"] = str(launch.hosts)
        pool = {
            "machineSpec": self._machine,
            "containerSpec": {
                "imageUri": self._image,
                "command": list(self._shipment.command),
                "env": [{"name": name, "value": text} for name, text in variables.items()],
            },
        }
        others = 0 if launch.tpu is not None else launch.hosts - 1
        return [{**pool, "replicaCount": count} for count in (1, others) if count]

    def _machine_spec(self) -> dict[str, Any]:
        """Returns the machine of each replica, and the reservation that it is taken from."""
        reservation = self._settings.reservation
        if reservation is None:
            return self._machine_alone()
        affinity = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [reservation],
        }
        return {**self._machine_alone(), "reservationAffinity": affinity}

    def _machine_alone(self) -> dict[str, Any]:
        tpu, settings = self._launch.tpu, self._settings
        kind, count = settings.accelerator_type, settings.accelerator_count
        if tpu is not None:
            if self._launch.slices > 1:
                raise UserError(
                    f"--slices {self._launch.slices}: a custom job is one slice; several of them "
                    "join on Google Kubernetes Engine, --on jobset"
                )
            for name in ("machine_type", "accelerator_type", "accelerator_count"):
                if getattr(settings, name) is not None:
                    raise UserError(_problem(name, f"TPU {tpu} says it; leave it out"))
            return {**tpu.vertex_machine_spec}
        if settings.machine_type is None:
            raise UserError(
                _problem(
                    "machine_type",
                    "needed without --tpu, such as n2-standard-16, or a3-highgpu-8g with "
                    "accelerator_type=NVIDIA_H100_80GB and accelerator_count=8",
                )
            )
        machine = {"machineType": settings.machine_type}
        if kind is None and count is None:
            return machine
        if kind is None or count is None:
            message = "goes with accelerator_count; give both or none"
            raise UserError(_problem("accelerator_type", message))
        if kind not in GPUS:
            message = f"Vertex AI has no {kind}; {did_you_mean(kind, GPUS)}"
            raise UserError(_problem("accelerator_type", message))
        return {**machine, "acceleratorType": kind, "acceleratorCount": count}


def _problem(name: str, message: str) -> Problem:
    return Problem(message, key=f"--on vertex --set {name}")


def note_job(place: str, uri: str = "") -> None:
    """Notes a job as `gcp_resources`, by which Vertex AI Pipelines shows it with its step."""
    if not place:
        return
    resources = [{"resourceType": _JOB, "resourceUri": uri}] if uri else []
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"resources": resources}))


def noted_job(place: str) -> str | None:
    """Returns the resource name of the job that a file notes; None if it notes none."""
    try:
        [noted] = read_json(place, 2**20)["resources"]
        named = _NAME.search(noted["resourceUri"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if named is None else named[0]


class VertexState(NamedTuple):
    """State of a job."""

    word: str
    error: str

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.word in ("succeeded", "failed", "cancelled", "expired", "partially_succeeded")

    @property
    def exit_code(self) -> int:
        """Exit code of the command on hosts that failed; 1 where the job does not tell it."""
        told = _CODE.search(self.error)
        return int(told[1]) if told else 1


class CustomJobs:
    """Client of the custom jobs of one project and location."""

    def __init__(self, project: str, location: str, endpoint: str | None) -> None:
        """Sets the client up; nothing is sent."""
        self._place = f"Vertex AI in {project}, {location}"
        self._project, self._location = project, location
        try:
            import google.auth.exceptions
            from google.api_core import exceptions, retry
            from google.auth.credentials import AnonymousCredentials
            from google.cloud import aiplatform_v1
        except ImportError:
            raise UserError(
                "--on vertex needs google.cloud.aiplatform: pip install 'orbax-bench[vertex]'"
            ) from None
        passing = retry.if_exception_type(
            exceptions.TooManyRequests,
            exceptions.ServerError,
            google.auth.exceptions.TransportError,
            OSError,  # of the connection
        )
        self._repeated = retry.Retry(passing, timeout=_PATIENCE_S)
        plain = endpoint is not None and endpoint.startswith("http://")
        with self._explaining_errors():
            self._client = aiplatform_v1.JobServiceClient(
                credentials=AnonymousCredentials() if plain else None,
                transport="rest",
                client_options={
                    "api_endpoint": endpoint or f"{location}-aiplatform.googleapis.com"
                },
            )

    def create(self, body: dict[str, Any]) -> str:
        """Creates a job, once, however often the request must be repeated.

        Returns:
            Its resource name.

        Raises:
            UserError: The job has fields that Vertex AI does not know.
        """
        from google.cloud.aiplatform_v1 import types
        from google.protobuf import json_format

        try:
            job = types.CustomJob(json_format.ParseDict(body, types.CustomJob.pb()()))
        except json_format.ParseError as error:
            raise UserError(f"not a custom job of Vertex AI: {error}") from None
        nonce, asked = body["labels"][_LABEL], False

        def attempt() -> str:
            nonlocal asked
            # A request that failed may have created the job nevertheless.
            known = self._find(nonce) if asked else None
            asked = True
            return known or str(
                self._client.create_custom_job(
                    parent=self._parent, custom_job=job, **_ONE_REQUEST
                ).name
            )

        return self._answered(attempt)

    def find(self, nonce: str) -> str | None:
        """Returns the name of the job whose label has that value; None if there is none."""
        return self._answered(lambda: self._find(nonce))

    def state(self, name: str) -> VertexState:
        """Returns the state of a job."""
        job = self._answered(lambda: self._client.get_custom_job(name=name, **_ONE_REQUEST))
        return VertexState(
            job.state.name.removeprefix("JOB_STATE_").lower(), str(job.error.message)
        )

    def cancel(self, name: str) -> None:
        """Asks Vertex AI to end a job."""
        self._answered(lambda: self._client.cancel_custom_job(name=name, **_ONE_REQUEST))

    def page(self, name: str) -> str:
        """Returns the page of a job in the Google Cloud console."""
        return (
            f"https://console.cloud.google.com/ai/platform/locations/{self._location}/training/"
            f"{name.rpartition('/')[2]}?project={self._project}"
        )

    def uri(self, name: str) -> str:
        """Returns the address of a job in the API, by which Vertex AI Pipelines links to it."""
        return f"https://{self._location}-aiplatform.googleapis.com/v1/{name}"

    @property
    def _parent(self) -> str:
        return f"projects/{self._project}/locations/{self._location}"

    def _find(self, nonce: str) -> str | None:
        wanted = {"parent": self._parent, "filter": f'labels.{_LABEL}="{nonce}"'}
        found = self._client.list_custom_jobs(wanted, **_ONE_REQUEST)
        return next((str(job.name) for job in found), None)

    def _answered(self, ask: Callable[[], _Answer]) -> _Answer:
        with self._explaining_errors():
            answer: _Answer = self._repeated(ask)()
            return answer

    @contextlib.contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Turns what the client raises into one message."""
        import google.auth.exceptions
        from google.api_core import exceptions

        try:
            yield
        except google.auth.exceptions.GoogleAuthError as error:
            raise UserError(
                f"no credentials for {self._place}: {error}; run `gcloud auth application-default "
                "login`"
            ) from None
        except exceptions.RetryError as error:
            raise UserError(
                f"{self._place} does not answer for {_PATIENCE_S:.0f} s: {error.cause}"
            ) from None
        except exceptions.GoogleAPIError as error:
            raise UserError(f"{self._place} refused: {error}") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{self._place}: {error}") from None
