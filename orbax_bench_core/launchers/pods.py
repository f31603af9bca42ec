"""Pods of a launch: how they are, and their logs, shown as they are written or kept of failures."""

import json
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from orbax_bench_core.errors import log_pieces, redacted
from orbax_bench_core.launchers.kubernetes import Object, PodsLauncher
from orbax_bench_core.launchers.launch import say

TIMEOUT_S: Final = (10.0, 60.0)
"""Longest times until a request is connected, and until its answer goes on."""
_LOG_TIMEOUT_S: Final = (10.0, 3600.0)
"""Those of a log that is followed: one operation may be silent for long."""
_REOPEN_S: Final = 1.0
"""Seconds until a log is opened again whose connection has ended before its container."""
_LOG_BYTES: Final = 10_000_000
_LABEL: Final = "jobset.sigs.k8s.io/"
"""Begins the labels that the controller of JobSets gives to pods."""
_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\S+) ")
"""Time of a line of a log. A kubelet writes all nine digits of the second, so that it sorts."""


def listed(core: Any, jobset: str, namespace: str) -> list[Object]:
    """Returns the pods of a JobSet."""
    answer = core.list_namespaced_pod(
        namespace,
        label_selector=f"{_LABEL}jobset-name={jobset}",
        _preload_content=False,
        _request_timeout=TIMEOUT_S,
    )
    return list(json.loads(answer.data)["items"])


def read(core: Any, name: str, namespace: str) -> Object | None:
    """Returns a pod; None if there is none of that name."""
    options = {"_preload_content": False, "_request_timeout": TIMEOUT_S}
    answer = unless(404, partial(core.read_namespaced_pod, name, namespace, **options))
    return None if answer is None else dict(json.loads(answer.data))


def unless(status: int, ask: Callable[[], Any]) -> Any | None:
    """Returns the answer to a request, or None if the server refuses it with this status."""
    try:
        return ask()
    except ApiException as error:
        if error.status != status:
            raise
        return None


def reason(error: Exception) -> str:
    """Returns why a request has failed, in the server's own words."""
    if not isinstance(error, ApiException):
        return str(error)
    try:
        said = json.loads(error.body)["message"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    return f"{error.status}: {said}"


def _containers(pod: Object) -> list[Object]:
    return list(pod.get("status", {}).get("containerStatuses") or ())


def _container(pod: Object, name: str) -> Object:
    """Returns the status of one container of a pod; empty if it has none."""
    return next((each for each in _containers(pod) if each["name"] == name), {})


def exit_code(pod: Object, name: str) -> int:
    """Returns with which code a container ended last; 0 where it has not."""
    status = _container(pod, name)
    for key in ("state", "lastState"):
        ended = status.get(key, {}).get("terminated")
        if ended:
            return int(ended.get("exitCode", 0))
    return 0


def has_passed(pod: Object, name: str) -> bool:
    """Says whether a container has ended with 0, after which nothing starts it again."""
    ended = _container(pod, name).get("state", {}).get("terminated")
    return bool(ended) and ended.get("exitCode", 0) == 0


def has_run(pod: Object) -> bool:
    """Says whether all containers of a pod run or have run."""
    states = [status.get("state", {}) for status in _containers(pod)]
    return bool(states) and all({"running", "terminated"} & state.keys() for state in states)


def reasons(pods: Sequence[Object]) -> str:
    """Returns why pods do not run, each reason once."""
    found: dict[str, str] = {}
    for pod in pods:
        name = pod["metadata"]["name"]
        for status in _containers(pod):
            waiting = status.get("state", {}).get("waiting")
            if waiting:
                text = ": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))
                found.setdefault(text, name)
        for condition in pod.get("status", {}).get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                found.setdefault(str(condition.get("message")), name)
    return "".join(f"; {name}: {text}" for text, name in list(found.items())[:3])


class Logs:
    """Logs of pods: that of host 0 as it is written, those of failed ones in the run directory."""

    def __init__(self, core: Any, namespace: str, job: PodsLauncher) -> None:
        """Keeps the client of the API."""
        self._core, self._namespace, self._job = core, namespace, job
        self._kept: set[tuple[str, str, int]] = set()
        self._shown: tuple[str, int] | None = None
        self._follower: threading.Thread | None = None
        self._ending = threading.Event()

    def is_head(self, pod: Object) -> bool:
        """Says whether this is the pod of host 0."""
        metadata = pod["metadata"]
        marks = {**metadata.get("annotations", {}), **metadata.get("labels", {})}
        return (
            marks.get(f"{_LABEL}replicatedjob-name") == self._job.head_job
            and marks.get(f"{_LABEL}job-index") == "0"
            and marks.get(_POD_INDEX, "0") == "0"
        )

    def look(self, pods: Sequence[Object]) -> None:
        """Keeps the logs of what has failed, and follows that of host 0."""
        for pod in pods:
            name, status = pod["metadata"]["name"], pod.get("status", {})
            for each in _containers(pod):
                attempt = each.get("restartCount", 0)
                self._keep_failed(name, each, "state", attempt)
                self._keep_failed(name, each, "lastState", attempt - 1)
            lost = status.get("phase") == "Failed" and not _containers(pod)
            if lost and (name, "", 0) not in self._kept:
                self._kept.add((name, "", 0))
                say(f"pod {name} has failed: {status.get('reason')}: {status.get('message')}")
            if self.is_head(pod):
                self._show(pod)

    def finish(self, timeout_s: float) -> None:
        """Waits for the last lines of host 0, and follows no further ones."""
        self._ending.set()
        if self._follower is not None:
            self._follower.join(timeout_s)

    def _keep_failed(self, pod: str, status: Object, key: str, attempt: int) -> None:
        container, ended = status["name"], status.get(key, {}).get("terminated") or {}
        if not ended.get("exitCode") or (pod, container, attempt) in self._kept:
            return
        self._kept.add((pod, container, attempt))
        why = f"exit code {ended['exitCode']}, {ended.get('reason', 'no reason given')}"
        try:
            log = self._log(
                pod, container, TIMEOUT_S, limit_bytes=_LOG_BYTES, previous=key == "lastState"
            ).data
        except (ApiException, HTTPError) as error:
            say(f"pod {pod} has failed ({why}), and its log cannot be read: {reason(error)}")
            return
        directory, settings = self._job.launch.output_directory, self._job.settings
        reached = settings.mounted_here or directory.startswith("gs://")
        place = _keep_log(directory if reached else "", f"{pod}-{container}-{attempt}.log", log)
        say(f"pod {pod} has failed ({why}); its log is {place}")

    def _log(self, pod: str, container: str, timeout_s: tuple[float, float], **query: Any) -> Any:
        return self._core.read_namespaced_pod_log(
            pod,
            self._namespace,
            container=container,
            _preload_content=False,
            _request_timeout=timeout_s,
            **query,
        )

    def _show(self, pod: Object) -> None:
        """Starts to print the log of host 0, one attempt after the other."""
        status = _container(pod, self._job.container)
        attempt = (pod["metadata"]["name"], status.get("restartCount", 0))
        started = {"running", "terminated"} & status.get("state", {}).keys()
        busy = self._follower is not None and self._follower.is_alive()
        if not started or busy or attempt == self._shown:
            return
        self._shown = attempt
        self._follower = threading.Thread(target=self._print, args=attempt, daemon=True)
        self._follower.start()

    def _print(self, pod: str, attempt: int) -> None:
        """Prints a log to its end; after a broken connection it goes on behind what was printed."""
        container, last = self._job.container, b""
        while True:
            try:
                last = self._print_after(last, pod)
                found = read(self._core, pod, self._namespace) or {}
            except (ApiException, HTTPError) as error:
                say(f"the log of {pod} cannot be followed: {reason(error)}")
                return
            status = _container(found, container)
            running = "running" in status.get("state", {})
            if status.get("restartCount") != attempt or not running:
                return
            if self._ending.wait(_REOPEN_S):
                return

    def _print_after(self, printed: bytes, pod: str) -> bytes:
        """Prints the lines after a time until the connection ends; returns the time of the last."""
        log = self._log(pod, self._job.container, _LOG_TIMEOUT_S, follow=True, timestamps=True)
        last = printed
        try:
            for line in log:
                stamp = _STAMP.match(line)
                if stamp is None or stamp[1] > printed:
                    sys.stdout.buffer.write(line if stamp is None else line[stamp.end() :])
                    sys.stdout.flush()
                    last = last if stamp is None else stamp[1]
        except (HTTPError, OSError):
            pass
        finally:
            log.close()
        return last


def _keep_log(output_directory: str, name: str, log: bytes) -> str:
    """Writes a log into the run directory, or where that cannot be, into a new folder here."""
    from orbax_bench_core.files import place, write_atomically

    pieces = log_pieces(log.splitlines(keepends=True))
    kept = b"".join(redacted(piece).encode(errors="surrogateescape") for piece in pieces)
    path = place(output_directory) / "logs" / "pods" / name
    try:
        if not output_directory:
            raise FileNotFoundError(path)
        write_atomically(path, kept)
    except Exception:  # noqa: BLE001 - every client of a store has its own errors
        here = Path(tempfile.mkdtemp(prefix="orbax-bench-pods-")) / name
        here.write_bytes(kept)
        return str(here)
    return str(path)
