"""A server of Kubeflow Pipelines: how it is reached, and its experiments, runs and schedules."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import kfp
import kfp_server_api
import urllib3.exceptions

from orbax_bench_pipelines.targets.job import SubmissionFailed
from orbax_bench_pipelines.targets.settings import Settings

TOKEN_VARIABLE = "ORBAX_BENCH_KFP_TOKEN"  # noqa: S105 - the name of a variable, not a secret
DEFAULT_EXPERIMENT = "Default"
ENDED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED", "ERROR")
"""States of a run that does not change any more."""
_PAGE = 100


class KubeflowServer:
    """A Kubeflow Pipelines installation, which is connected to when something is asked of it."""

    def __init__(self, settings: Settings) -> None:
        """Takes the settings that say where it is."""
        self._settings = settings

    @functools.cached_property
    def client(self) -> Any:
        """The endpoint, or the cluster of the kubeconfig, as `kfp.Client` finds it."""
        return kfp.Client(
            host=self._settings.endpoint,
            namespace=self._settings.namespace or "kubeflow",
            existing_token=os.environ.get(TOKEN_VARIABLE),
        )

    @property
    def experiment(self) -> str:
        """Name of the experiment."""
        return self._settings.experiment or DEFAULT_EXPERIMENT

    def experiment_id(self) -> str:
        """Returns the id of the experiment, which is made when it is missing."""
        with contextlib.redirect_stdout(io.StringIO()):  # it prints a link of its own
            experiment = self.client.create_experiment(
                self.experiment, namespace=self._settings.namespace
            )
        return str(experiment.experiment_id)

    def recurring_runs(self, name: str, experiment_id: str) -> list[Any]:
        """Returns the recurring runs of that name in an experiment, oldest first."""
        pages = _pages(
            lambda token: self.client.list_recurring_runs(
                page_token=token,
                page_size=_PAGE,
                sort_by="created_at asc",
                experiment_id=experiment_id,
            )
        )
        return [
            each
            for page in pages
            for each in page.recurring_runs or ()
            if each.display_name == name
        ]

    def active_runs(self, recurring_run_id: str, experiment_id: str) -> list[str]:
        """Returns the ids of the runs that a recurring run has begun and that have not ended."""
        pages = _pages(
            lambda token: self.client.list_runs(
                page_token=token, page_size=_PAGE, experiment_id=experiment_id
            )
        )
        return [
            str(run.run_id)
            for page in pages
            for run in page.runs or ()
            if run.recurring_run_id == recurring_run_id and run.state not in ENDED
        ]

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turns what the client raises into one message."""
        endpoint = self._settings.endpoint
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
            hint = "" if endpoint else "; give its address with --set endpoint=URL"
            reason = getattr(error, "reason", error)
            raise SubmissionFailed(f"cannot reach {place}: {reason}{hint}") from None


def _pages(ask: Callable[[str], Any]) -> Iterator[Any]:
    """Yields the pages of a list, each asked for with the token of the one before."""
    token = ""
    while True:
        page = ask(token)
        yield page
        token = page.next_page_token
        if not token:
            return
