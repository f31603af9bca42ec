"""Vertex AI in one project and location: how it is reached, and what its refusals say."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import google.auth.exceptions
from google.api_core import exceptions as api_exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets.job import SubmissionFailed
from orbax_bench_pipelines.targets.settings import Settings


def connect(settings: Settings, *, dry: bool = False) -> None:
    """Sets Google's client up; nothing is sent."""
    logging.getLogger("google.cloud.aiplatform").setLevel(logging.WARNING)  # it prints code
    plain = settings.endpoint is not None and settings.endpoint.startswith("http://")
    with explained(settings):
        aiplatform.init(
            project=settings.project,
            location=settings.location,
            credentials=AnonymousCredentials() if dry or plain else None,
            api_endpoint=settings.endpoint,
            api_transport="rest" if plain else None,
        )


@contextlib.contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turns what the client raises into one message."""
    place = f"Vertex AI in {settings.project}, {settings.location}"
    try:
        yield
    except google.auth.exceptions.GoogleAuthError as error:
        raise SubmissionFailed(
            f"no credentials for {place}: {error}; run `gcloud auth application-default login`"
        ) from None
    except api_exceptions.GoogleAPIError as error:
        raise SubmissionFailed(f"{place} refused: {error}") from None
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None
    except (OSError, RuntimeError) as error:
        raise SubmissionFailed(f"{place}: {error}") from None
