"""Logs of pods: shown as they are written, and kept of what failed."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import statuses
from orbax_bench_core.launchers.kubernetes_api import KubernetesApi, Object, Refused
from orbax_bench_core.launchers.watched import Watched

_LOG_SILENCE_S: Final = 3600.0
"""Longest silence of a log that is followed: one operation may take long."""
_REOPEN_S: Final = 1.0
"""Seconds until a log is opened again whose connection has ended before its container."""
_LOG_BYTES: Final = 10_000_000
LABEL: Final = "jobset.sigs.k8s.io/"
"""Begins the labels that the controller of JobSets gives to pods."""
_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"


class Logs:
    """Logs of pods: that of host 0 as it is written, those of failed ones in the run directory."""

    def __init__(self, api: KubernetesApi, core: str, watched: Watched) -> None:
        self._api = api
        self._core = core
        self._watched = watched
        self._kept: set[tuple[str, str, int]] = set()
        self._shown: tuple[str, int] | None = None
        self._follower: threading.Thread | None = None
        self._ending = threading.Event()

    def is_head(self, pod: Object) -> bool:
        """Says whether this is the pod of host 0."""
        metadata = pod["metadata"]
        marks = {**metadata.get("annotations", {}), **metadata.get("labels", {})}
        return (
            marks.get(f"{LABEL}replicatedjob-name") == self._watched.head_job
            and marks.get(f"{LABEL}job-index") == "0"
            and marks.get(_POD_INDEX, "0") == "0"
        )

    def look(self, pods: Sequence[Object]) -> None:
        """Keeps the logs of what has failed, and follows that of host 0."""
        for pod in pods:
            for status in statuses.containers(pod):
                self._keep_failed(pod, status)
            if pod.get("status", {}).get("phase") == "Failed" and not statuses.containers(pod):
                self._say_lost(pod)
            if self.is_head(pod):
                self._show(pod)

    def finish(self, timeout_s: float) -> None:
        """Waits for the last lines of host 0, and follows no further ones."""
        self._ending.set()
        if self._follower is not None:
            self._follower.join(timeout_s)

    def _keep_failed(self, pod: Object, status: Object) -> None:
        attempt = status.get("restartCount", 0)
        for key, number in (("state", attempt), ("lastState", attempt - 1)):
            ended = status.get(key, {}).get("terminated")
            mark = (pod["metadata"]["name"], status["name"], number)
            if ended and ended.get("exitCode") and mark not in self._kept:
                self._kept.add(mark)
                self._keep(mark, ended, previous=key == "lastState")

    def _keep(
        self, mark: tuple[str, str, int], ended: Mapping[str, Any], *, previous: bool
    ) -> None:
        pod, container, attempt = mark
        why = f"exit code {ended['exitCode']}, {ended.get('reason', 'no reason given')}"
        path = f"{self._core}/pods/{pod}/log"
        try:
            log = self._api.text(
                path,
                container=container,
                limitBytes=_LOG_BYTES,
                **({"previous": "true"} if previous else {}),
            )
        except (Refused, UserError) as error:
            _say(f"pod {pod} has failed ({why}), and its log cannot be read: {error}")
            return
        place = _keep_log(self._watched.output_directory, f"{pod}-{container}-{attempt}.log", log)
        _say(f"pod {pod} has failed ({why}); its log is {place}")

    def _say_lost(self, pod: Object) -> None:
        name, status = pod["metadata"]["name"], pod["status"]
        if (name, "", 0) not in self._kept:
            self._kept.add((name, "", 0))
            _say(f"pod {name} has failed: {status.get('reason')}: {status.get('message')}")

    def _show(self, pod: Object) -> None:
        """Starts to print the log of host 0, one attempt after the other."""
        status = statuses.container(pod, self._watched.container)
        attempt = (pod["metadata"]["name"], status.get("restartCount", 0))
        started = {"running", "terminated"} & status.get("state", {}).keys()
        busy = self._follower is not None and self._follower.is_alive()
        if not started or busy or attempt == self._shown:
            return
        self._shown = attempt
        self._follower = threading.Thread(target=self._print, args=attempt, daemon=True)
        self._follower.start()

    def _print(self, pod: str, attempt: int) -> None:
        """Prints a log to its end, across broken connections."""
        last: tuple[str, str] = ("", "")
        since: dict[str, str] = {}
        while True:
            try:
                lines = self._api.lines(
                    f"{self._core}/pods/{pod}/log",
                    _LOG_SILENCE_S,
                    container=self._watched.container,
                    follow="true",
                    timestamps="true",
                    **since,
                )
                for stamp, text in map(_stamped, lines):
                    if stamp > last or not stamp[0]:
                        sys.stdout.buffer.write(text + b"\n")
                        sys.stdout.flush()
                        last = max(stamp, last)
                found = self._api.get(f"{self._core}/pods/{pod}") or {}
            except (Refused, UserError) as error:
                _say(f"the log of {pod} cannot be followed: {error}")
                return
            status = statuses.container(found, self._watched.container)
            same = status.get("restartCount") == attempt
            if not (same and "running" in status.get("state", {})):
                return
            if self._ending.wait(_REOPEN_S):
                return
            since = {"sinceTime": f"{last[0]}Z"} if last[0] else {}


def _stamped(line: bytes) -> tuple[tuple[str, str], bytes]:
    """Returns the time stamp of a line of a log, as it sorts, and the text behind it."""
    found = re.match(rb"(\d{4}-\d\d-\d\dT[\d:]{8})(?:\.(\d+))?Z ?", line)
    if found is None:
        return ("", ""), line
    fraction = (found[2] or b"").decode().ljust(9, "0")
    return (found[1].decode(), fraction), line[found.end() :]


def _keep_log(output_directory: str, name: str, log: bytes) -> str:
    """Writes a log into the run directory, or where that cannot be, beside it on this machine."""
    from etils import epath

    from orbax_bench_core.files import write_atomically

    path = epath.Path(output_directory) / "logs" / "pods" / name
    try:
        write_atomically(path, log)
    except Exception:  # noqa: BLE001 - every client of a store has its own errors
        here = Path(tempfile.mkdtemp(prefix="orbax-bench-pods-")) / name
        here.write_bytes(log)
        return str(here)
    return str(path)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
