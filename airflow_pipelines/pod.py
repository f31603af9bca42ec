"""Operator that runs one step in a pod; needs Airflow's Kubernetes provider."""

from __future__ import annotations

from typing import Any, Final

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from orbax_bench_airflow.operators import note_on_outlets
from orbax_bench_airflow.outcome import check

RESULT = "/airflow/xcom/return.json"
"""Where the provider's sidecar looks for what a pod returns."""
_START_TIMEOUT_S: Final = 1800
"""Longest time for a node, and again for the image, as the launchers of hosts wait."""


class StepPodOperator(KubernetesPodOperator):
    """One step in a pod, whose exit code says whether trying again can help."""

    def __init__(self, *, arguments: list[str], **kwargs: Any) -> None:
        """Takes the step and its words, and what `KubernetesPodOperator` takes."""
        given = {
            "cmds": ["orbax-bench", "step"],
            "do_xcom_push": True,
            "deferrable": True,
            # Minutes pass until a new node is there with the image; the provider waits 2.
            "startup_timeout_seconds": _START_TIMEOUT_S,
        }
        super().__init__(arguments=arguments, **{**given, **kwargs})

    def cleanup(self, pod: Any, remote_pod: Any, *args: Any, **kwargs: Any) -> None:
        """Clears the pod up; a failed one becomes the error that its exit code stands for.

        Raises:
            AirflowFailException: Trying again would end in the same way.
            AirflowException: It may pass when it is tried again.
        """
        try:
            super().cleanup(pod, remote_pod, *args, **kwargs)
        except AirflowSkipException:
            raise
        except AirflowException as failure:
            code = exit_code(remote_pod, self.base_container_name)
            if code is not None:
                check(code, str(self.arguments[0]), str(failure))
            raise

    def post_execute(self, context: Any, result: Any = None) -> None:
        """Notes what the step returned on its outlets."""
        super().post_execute(context, result)
        note_on_outlets(context, result)


def exit_code(pod: Any, container: str) -> int | None:
    """Returns the exit code of a container; None if Kubernetes does not say it."""
    statuses = (pod.status.container_statuses if pod and pod.status else None) or []
    for status in statuses:
        if status.name == container and status.state and status.state.terminated:
            return int(status.state.terminated.exit_code)
    return None
