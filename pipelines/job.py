"""A pipeline with everything that it is submitted with."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orbax_bench_pipelines.placement import Placement
from orbax_bench_pipelines.registry import Pipeline
from orbax_bench_pipelines.settings import Settings


@dataclasses.dataclass(frozen=True)
class Request:
    """One request to a service.

    Attributes:
        method: HTTP method.
        url: Where to.
        body: What is sent, as JSON.
    """

    method: str
    url: str
    body: Any


@dataclasses.dataclass(frozen=True)
class Job:
    """A pipeline that is about to be submitted.

    Attributes:
        pipeline: The pipeline.
        placement: Where its steps run.
        arguments: Its parameters.
        name: Name for people, of the run or of the schedule.
    """

    pipeline: Pipeline
    placement: Placement
    arguments: Mapping[str, Any]
    name: str

    @property
    def settings(self) -> Settings:
        """What was set at submit time."""
        return self.placement.settings

    @functools.cached_property
    def package(self) -> str:
        """The compiled pipeline."""
        from orbax_bench_pipelines.compile import compiled

        return compiled(self.pipeline, self.placement)

    @contextlib.contextmanager
    def package_file(self) -> Iterator[str]:
        """Gives the path of a file that holds the compiled pipeline meanwhile."""
        with tempfile.TemporaryDirectory(prefix="orbax-bench-") as folder:
            path = Path(folder) / "pipeline.yaml"
            path.write_text(self.package)
            yield str(path)


class SubmissionFailed(Exception):
    """A service could not be reached, or refused what was sent."""


def job_name(*parts: str) -> str:
    """Returns a name that every service takes, made of words for people.

    Args:
        *parts: Such as the name of the pipeline and of the suite.
    """
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:100].strip("-")


def as_text(requests: list[Request]) -> str:
    """Returns requests as JSON for people and for `jq`.

    Args:
        requests: What would be sent.
    """
    return json.dumps([dataclasses.asdict(request) for request in requests], indent=2)
