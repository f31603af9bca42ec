"""The submission of a pipeline: what is sent, and the services that take it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import http.client
import json
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from orbax_bench_core.errors import Problem, UserError, one_line, shown
from orbax_bench_core.interrupts import Late, in_time
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.placement import Placement
from orbax_bench_pipelines.targets.settings import Settings

if TYPE_CHECKING:
    from orbax_bench_core.engine import RunEnding
    from orbax_bench_pipelines.definitions import Pipeline
    from orbax_bench_pipelines.targets.kubeflow import Kubeflow, KubeflowSchedules
    from orbax_bench_pipelines.targets.vertex import Vertex, VertexSchedules


@dataclasses.dataclass(frozen=True)
class Job:
    """A pipeline that is about to be submitted."""

    pipeline: Pipeline
    placement: Placement
    arguments: Mapping[str, Any]
    name: str  # for people, of the run or of the schedule

    @property
    def settings(self) -> Settings:
        """What was set at submit time."""
        return self.placement.settings

    @functools.cached_property
    def package(self) -> str:
        """The compiled pipeline."""
        from orbax_bench_components.compile import compiled

        return compiled(self.pipeline.build(self.placement))

    @contextlib.contextmanager
    def package_file(self) -> Iterator[str]:
        """Gives the path of a file that holds the compiled pipeline meanwhile."""
        with tempfile.TemporaryDirectory(prefix="orbax-bench-") as folder:
            path = Path(folder) / "pipeline.yaml"
            path.write_text(self.package)
            yield str(path)


class SubmissionFailed(Exception):
    """A service could not be reached, or refused what was sent."""


class RunGone(Exception):
    """A run that was under way has been deleted."""


Found = TypeVar("Found")
ANSWER_S: Final = 8.0
"""Seconds in which a service answers the first question: its clients ask again for minutes."""
_POLL_S: Final = 30.0
_PATIENCE_S: Final = 600.0


def answered(ask: Callable[[], Found], place: str) -> Found:
    """Returns the answer to the first question to a service, or fails when nothing answers."""
    try:
        return in_time(ask, ANSWER_S)
    except Late:
        raise SubmissionFailed(f"{place} has not answered within {ANSWER_S:g} s") from None


def require_answer(place: str, url: str) -> None:
    """Fails where nothing answers at the address of a service, or only that it is not well.

    Any other answer is one: a refusal too, which the client explains.

    Raises:
        SubmissionFailed: Nothing answers there, or something that speaks no HTTP.
        UserError: The address cannot be one.
    """

    def ask() -> None:
        try:
            # Its own timeout ends the thread; `answered` tells of it first.
            urllib.request.urlopen(url, timeout=2 * ANSWER_S).close()  # noqa: S310 - a service
        except urllib.error.HTTPError as refusal:
            refusal.close()
            if refusal.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
                raise SubmissionFailed(
                    f"{place}, at {url}, answered {refusal.code} {refusal.reason}"
                ) from None
        except (http.client.InvalidURL, ValueError, OverflowError) as fault:
            raise UserError(
                Problem(f"{shown(url)} is not an address: {fault}", key="endpoint")
            ) from None
        except (OSError, http.client.HTTPException) as failure:
            reason = failure.reason if isinstance(failure, urllib.error.URLError) else failure
            if not isinstance(reason, ssl.SSLError):
                said = f"cannot reach {place}, at {url}: {one_line(str(reason).strip())}"
                raise SubmissionFailed(said) from None

    answered(ask, f"{place}, at {url},")


def patiently(look: Callable[[], Found], say: Callable[[str], None], poll_s: float) -> Found:
    """Looks at a run, and again if the service fails; returns the result of the look.

    The run continues even if nobody can ask for it: a connection may be interrupted for minutes.

    Raises:
        SubmissionFailed: It has failed for ten minutes.
    """
    failures = 0
    while True:
        try:
            return look()
        except SubmissionFailed as failure:
            failures += 1
            if failures * poll_s > _PATIENCE_S:
                raise
            if failures == 1:
                say(f"{failure}; it is asked again for {_PATIENCE_S / 60:g} minutes")
            time.sleep(poll_s)


def await_end(active: Callable[[], list[str]], say: Callable[[str], None]) -> None:
    """Waits until no run is active, and says which are, whenever that changes."""
    shown: list[str] = []
    while running := active():
        if running != shown:
            shown = running
            say(f"waiting for {', '.join(running)} to end")
        time.sleep(_POLL_S)


def schedules_of(
    settings: Settings, target: Target, name: str
) -> KubeflowSchedules | VertexSchedules:
    """Returns the schedules of a name."""
    if target is Target.KFP:
        from orbax_bench_pipelines.targets.kubeflow import KubeflowSchedules, KubeflowServer

        return KubeflowSchedules(KubeflowServer(settings), name)
    from orbax_bench_pipelines.targets.vertex import VertexSchedules

    return VertexSchedules(settings, name)


def ending_of(settings: Settings, target: Target, run_id: str) -> RunEnding | None:
    """Returns how a run of a service ended, as its exit task told it; None if nothing does."""
    if target is Target.KFP:
        from orbax_bench_pipelines.targets.kubeflow import KubeflowServer

        return KubeflowServer(settings).ending(run_id)
    from orbax_bench_pipelines.targets.vertex import ending

    return ending(settings, run_id)


def service_for(job: Job, *, dry: bool = False) -> Kubeflow | Vertex:
    """Returns the service that the target of a job is."""
    if job.placement.target is Target.KFP:
        from orbax_bench_pipelines.targets.kubeflow import Kubeflow

        return Kubeflow(job)
    from orbax_bench_pipelines.targets.vertex import Vertex

    return Vertex(job, dry=dry)


def job_name(*parts: str) -> str:
    """Returns a name that every service takes, made of the names of pipeline and suite."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:100].strip("-")


class Request(NamedTuple):
    """A request to a service: its body is what JSON can hold."""

    url: str
    body: Any
    method: str = "POST"


def as_text(*requests: Request) -> str:
    """Returns requests, in their order, as JSON, for people and for `jq`."""
    return json.dumps([request._asdict() for request in requests], indent=2)
