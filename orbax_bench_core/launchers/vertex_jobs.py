"""Custom jobs of one project and location of Vertex AI: created, looked at, cancelled."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import read_json

LABEL: Final = "orbax-bench-launch"
"""Label of each job, with a value of its own: whether a request that failed has created it."""

_PATIENCE_S: Final = 120.0
"""Longest time for which a request is repeated that fails for a moment."""
_ONE_REQUEST: Final[dict[str, Any]] = {"retry": None, "timeout": 60.0}
_STATE: Final = "JOB_STATE_"
_JOB: Final = "CustomJob"
_NAME: Final = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[^/]+$")
_CODE: Final = re.compile(r"non-zero status of (\d+)")

_MOST_NOTED_BYTES: Final = 2**20
"""Bytes of a file that notes a job."""

_Answer = TypeVar("_Answer")


def note_job(place: str, uri: str = "") -> None:
    """Notes a job, in the form of the output `gcp_resources` of Google Cloud Pipeline Components.

    By that Vertex AI Pipelines shows the job with the step that waits for it.
    """
    if not place:
        return
    resources = [{"resourceType": _JOB, "resourceUri": uri}] if uri else []
    path = Path(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"resources": resources}))


def noted_job(place: str) -> str | None:
    """Returns the resource name of the job that a file notes; None where it notes none."""
    try:
        [noted] = read_json(place, _MOST_NOTED_BYTES)["resources"]
        named = _NAME.search(noted["resourceUri"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if named is None else named[0]


class JobState(NamedTuple):
    """State of a job."""

    word: str
    error: str

    @property
    def ended(self) -> bool:
        """Whether it will not change any more."""
        return self.word in ("succeeded", "failed", "cancelled", "expired", "partially_succeeded")

    @property
    def exit_code(self) -> int:
        """Exit code of the command on the hosts; 1 where the job does not tell it."""
        if self.word == "succeeded":
            return 0
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
        with self._explained():
            self._client = aiplatform_v1.JobServiceClient(
                credentials=AnonymousCredentials() if plain else None,
                transport="rest",
                client_options={
                    "api_endpoint": endpoint or f"{location}-aiplatform.googleapis.com"
                },
            )

    def create(self, body: dict[str, Any]) -> str:
        """Creates a job, once, however often the request must be repeated."""
        from google.cloud.aiplatform_v1 import types
        from google.protobuf import json_format

        try:
            job = types.CustomJob(json_format.ParseDict(body, types.CustomJob.pb()()))
        except json_format.ParseError as error:
            raise UserError(f"not a custom job of Vertex AI: {error}") from None
        nonce, asked = body["labels"][LABEL], False

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
        """Returns the name of the job whose label has that value; None where there is none."""
        return self._answered(lambda: self._find(nonce))

    def state(self, name: str) -> JobState:
        """Returns the state of a job."""
        job = self._answered(lambda: self._client.get_custom_job(name=name, **_ONE_REQUEST))
        return JobState(job.state.name.removeprefix(_STATE).lower(), str(job.error.message))

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
        wanted = {"parent": self._parent, "filter": f'labels.{LABEL}="{nonce}"'}
        found = self._client.list_custom_jobs(wanted, **_ONE_REQUEST)
        return next((str(job.name) for job in found), None)

    def _answered(self, ask: Callable[[], _Answer]) -> _Answer:
        with self._explained():
            answer: _Answer = self._repeated(ask)()
            return answer

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
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
