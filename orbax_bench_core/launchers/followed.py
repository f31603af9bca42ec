"""Course of a launch on Kubernetes: created, followed to its end, its logs kept, deleted."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.config import UserError
from orbax_bench_core.launchers.kubernetes import FINGERPRINT, OURS, KubernetesSettings
from orbax_bench_core.launchers.kubernetes_api import KubernetesApi, Object, Refused, connected
from orbax_bench_core.launchers.launch import interrupted_by_sigterm

_WATCH_S: Final = 10
"""Seconds after which the server ends a watch; pods are looked at anew at least as often."""
_SETTLE_S: Final = 0.3
"""Seconds for which further changes are waited for: they come in bursts."""
_GONE_S: Final = 90.0
"""Longest wait for what was deleted to be gone, so that the same name can be used again."""
_POLL_S: Final = 1.0
_LAST_LINES_S: Final = 10.0
"""Longest wait for the last lines of a log."""
_LOG_SILENCE_S: Final = 3600.0
"""Longest silence of a log that is followed: one operation may take long."""
_REOPEN_S: Final = 1.0
"""Seconds until a log is opened again whose connection has ended before its container."""
_LOG_BYTES: Final = 10_000_000
_EXIT_INVALID: Final = 2
_EXIT_INTERRUPTED: Final = 130
_DONE: Final = ("Completed", "Complete")
"""Terminal states of success: JobSet's word and PathwaysJob's."""
_LABEL: Final = "jobset.sigs.k8s.io/"
_POD_INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object that consists of pods.

    Attributes:
        group: Its API group.
        version: Version of that.
        plural: Its name in paths.
        name: Its name in manifests.
        remedy: What a cluster without it needs.
    """

    group: str
    version: str
    plural: str
    name: str
    remedy: str

    @property
    def api_version(self) -> str:
        """As manifests write it."""
        return f"{self.group}/{self.version}"


JOBSET: Final = Kind(
    group="jobset.x-k8s.io",
    version="v1alpha2",
    plural="jobsets",
    name="JobSet",
    remedy="install JobSet: https://jobset.sigs.k8s.io/docs/installation/",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watched:
    """What is created, and what is looked at.

    Attributes:
        kind: Kind of the object.
        manifest: The object.
        secret: A Secret that its pods need; None for none.
        hosts: How many pods there are in all that have to start.
        head_job: Replicated job of the pod whose log is shown.
        container: Container of that pod.
        output_directory: The run directory, which logs of failed pods go to.
    """

    kind: Kind
    manifest: Object
    secret: Object | None
    hosts: int
    head_job: str
    container: str
    output_directory: str


def followed(watched: Watched, settings: KubernetesSettings, *, before: Callable[[], None]) -> int:
    """Creates an object, follows it to its end, and deletes it.

    Args:
        watched: What is created.
        settings: Where, and for how long.
        before: Called before it is created.

    Returns:
        The exit code of host 0.

    Raises:
        UserError: The cluster refuses, does not start the pods in time, or does not answer.
    """
    with (
        connected(
            namespace=settings.namespace, context=settings.context, kubeconfig=settings.kubeconfig
        ) as api,
        interrupted_by_sigterm(),
    ):
        return Course(api, watched, settings, before=before).run()


class Course:
    """One launch on Kubernetes, from its creation to its end."""

    def __init__(
        self,
        api: KubernetesApi,
        watched: Watched,
        settings: KubernetesSettings,
        *,
        before: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Describes it; `run` does it.

        Args:
            api: The cluster.
            watched: What is created.
            settings: For how long, and whether it is kept.
            before: Called before it is created.
            clock: Seconds since some moment.
            sleep: Waits for a number of seconds.
        """
        self._api = api
        self._watched = watched
        self._settings = settings
        self._before = before
        self._sleep = sleep
        self._name = str(watched.manifest["metadata"]["name"])
        namespace = f"namespaces/{api.namespace}"
        self._objects = f"/apis/{watched.kind.api_version}/{namespace}/{watched.kind.plural}"
        self._core = f"/api/v1/{namespace}"
        self._waiting = _Waiting(settings, clock)
        self._logs = _Logs(api, self._core, watched)
        self._last_said = ""
        self._code = 0
        self._ours = False

    def run(self) -> int:
        """Creates all, follows it, and deletes it.

        Returns:
            The exit code of host 0.

        Raises:
            UserError: The cluster refuses, does not start the pods in time, or does not answer.
        """
        ended = False
        try:
            self._create()
            code = self._follow()
            ended = True
        except Refused as refusal:
            raise UserError(self._why(refusal)) from None
        except KeyboardInterrupt:
            _say("interrupted; the same command goes on from what has been measured")
            return _EXIT_INTERRUPTED
        else:
            return code
        finally:
            self._logs.finish(_LAST_LINES_S if ended else 0)
            self._clear()

    @property
    def _path(self) -> str:
        return f"{self._objects}/{self._name}"

    @property
    def _called(self) -> str:
        return f"{self._watched.kind.name} {self._api.namespace}/{self._name}"

    def _create(self) -> None:
        """Creates the object, unless one of the same launch still runs."""
        made = self._one_that_is_there()
        new = made is None
        if made is None:
            self._before()
            owner = self._owner()
            owners = {} if owner is None else {"ownerReferences": [owner]}
            metadata = {**self._watched.manifest["metadata"], **owners}
            made = self._create_or_find({**self._watched.manifest, "metadata": metadata})
        self._ours = True
        _say(f"{'created' if new else 'going on with'} {self._called}")
        if self._watched.secret is not None:
            self._add_secret(self._watched.secret, made, new=new)

    def _create_or_find(self, body: Object) -> Object:
        """Creates the object; a server that failed may have created it nevertheless."""
        try:
            return self._api.create(self._objects, body)
        except Refused as refusal:
            found = self._one_that_is_there() if refusal.status == 409 else None
            if found is None:
                raise
            return found

    def _one_that_is_there(self) -> Object | None:
        """Returns an object of the same launch that still runs; None after removing a finished one.

        Raises:
            UserError: What is there is not of this launch.
        """
        found = self._api.get(self._path)
        if found is None:
            return None
        metadata = found["metadata"]
        ours = OURS.items() <= metadata.get("labels", {}).items()
        if ours and _terminal(found):
            self._api.delete(self._path)
            self._await_gone()
            return None
        wanted = self._watched.manifest["metadata"]["annotations"][FINGERPRINT]
        if ours and metadata.get("annotations", {}).get(FINGERPRINT) == wanted:
            return found
        raise UserError(
            f"{self._called} is there already, and runs something else. Choose another --name, or "
            f"end it: kubectl delete {self._watched.kind.plural} {self._name} "
            f"-n {self._api.namespace}"
        )

    def _add_secret(self, secret: Object, owner: Object, *, new: bool) -> None:
        """Creates the Secret, which goes with its owner; pods wait for it."""
        metadata = secret["metadata"] | {"ownerReferences": [_reference(owner)]}
        path, body = f"{self._core}/secrets", {**secret, "metadata": metadata}
        try:
            self._api.create(path, body)
        except Refused as refusal:
            if refusal.status != 409:
                raise
            if new:  # left by a launch whose object is gone
                self._api.delete(f"{path}/{metadata['name']}")
                self._api.create(path, body)

    def _owner(self) -> Object | None:
        """Returns the pod that this runs in, with which all must go; None outside of one."""
        name = os.environ.get("KFP_POD_NAME") or os.environ.get("HOSTNAME", "")
        if not (self._api.in_pod and name):
            return None
        try:
            pod = self._api.get(f"{self._core}/pods/{name}")
        except Refused as refusal:
            pod = None
            _say(f"cannot look at pod {name}: {refusal.message}")
        if pod is None:
            _say(f"what is created outlives this pod if it is killed: it is not owned by {name}")
            return None
        return _reference({"apiVersion": "v1", "kind": "Pod", **pod})

    def _follow(self) -> int:
        while True:
            found = self._api.get(self._path)
            if found is None:
                self._ours = False
                raise UserError(f"{self._called} was deleted by somebody else")
            pods = self._pods()
            self._logs.look(pods)
            self._tell(found, pods)
            code = self._ended(found, pods)
            if code is not None:
                return code
            self._waiting.look(suspended=_suspended(found), pods=pods, hosts=self._watched.hosts)
            self._await_change(found)

    def _pods(self) -> list[Object]:
        selector = f"{_LABEL}jobset-name={self._name}"
        found = self._api.get(f"{self._core}/pods", labelSelector=selector)
        return [] if found is None else list(found["items"])

    def _ended(self, found: Object, pods: Sequence[Object]) -> int | None:
        """Returns the exit code once all has ended; None before."""
        for pod in pods:
            if self._logs.is_head(pod):
                self._code = _exit_code(pod, self._watched.container) or self._code
        state = _terminal(found)
        if state in _DONE:
            return 0
        if state:
            _say(f"{self._called} failed: {_condition(found, 'Failed').get('message', '')}")
            return self._code or 1
        if self._code == _EXIT_INVALID:
            _say("host 0 refused to run, and would again")
            return self._code
        return None

    def _tell(self, found: Object, pods: Sequence[Object]) -> None:
        """Says how far it is, where that has changed."""
        if _suspended(found):
            queue = self._settings.queue
            said = f"waits in the queue {queue} of Kueue" if queue else "is suspended"
        else:
            running = sum(map(_has_run, pods))
            said = f"{running} of {self._watched.hosts} pods run{_reasons(pods)}"
        restarts = found.get("status", {}).get("restarts", 0)
        if restarts:
            said += f"; all were restarted {restarts} times"
        if said != self._last_said:
            self._last_said = said
            _say(f"{self._called}: {said}")

    def _await_change(self, found: Object) -> None:
        """Waits until the object changes, or for some seconds.

        What is true is always asked for anew, so a watch that the server ends, or for which the
        version is too old (410), costs nothing but a look.
        """
        changed = False
        watch = self._api.lines(
            self._objects,
            _WATCH_S + 5,
            watch="true",
            fieldSelector=f"metadata.name={self._name}",
            resourceVersion=found["metadata"]["resourceVersion"],
            timeoutSeconds=_WATCH_S,
        )
        try:
            with contextlib.closing(watch):
                changed = any(json.loads(line).get("type") != "ERROR" for line in watch)
        except (Refused, ValueError):
            pass
        self._sleep(_SETTLE_S if changed else _POLL_S)

    def _clear(self) -> None:
        """Deletes what was created, or says how to."""
        if not self._ours:
            return
        remove = f"kubectl delete {self._watched.kind.plural} {self._name} -n {self._api.namespace}"
        if self._settings.keep:
            _say(f"{self._called} is kept; remove it with: {remove}")
            return
        try:
            self._api.delete(self._path)
            if self._watched.secret is not None:
                name = self._watched.secret["metadata"]["name"]
                self._api.delete(f"{self._core}/secrets/{name}")
            self._await_gone()
        except (Refused, UserError) as error:
            _say(f"{self._called} could not be deleted ({error}): {remove}")

    def _await_gone(self) -> None:
        for _ in range(round(_GONE_S / _POLL_S)):
            if self._api.get(self._path) is None:
                return
            self._sleep(_POLL_S)
        _say(f"{self._called} is still being deleted")

    def _why(self, refusal: Refused) -> str:
        kind = self._watched.kind
        match refusal.status:
            case 401 | 403:
                remedy = "docs/launch/jobset.md has the role that this takes"
            case 404:
                remedy = f"create the namespace, or {kind.remedy}"
            case _:
                remedy = "--dry-run prints what was sent"
        return f"Kubernetes refuses {self._called} ({refusal}); {remedy}"


class _Waiting:
    """Time that counts: that in which the cluster could run pods."""

    def __init__(self, settings: KubernetesSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._seen = clock()
        self._active = 0.0
        self._starting = 0.0

    def look(self, *, suspended: bool, pods: Sequence[Object], hosts: int) -> None:
        """Counts the time since the last look.

        Raises:
            UserError: It is more than was allowed.
        """
        passed, self._seen = self._clock() - self._seen, self._clock()
        if suspended:
            return
        self._active += passed
        all_run = sum(map(_has_run, pods)) >= hosts
        self._starting = 0.0 if all_run else self._starting + passed
        if self._starting > self._settings.start_timeout_s:
            raise UserError(
                f"not all of {hosts} pods ran within {self._settings.start_timeout_s:.0f} s"
                f"{_reasons(pods)}; --set start_timeout_s=SECONDS waits longer"
            )
        if self._settings.timeout_s is not None and self._active > self._settings.timeout_s:
            raise UserError(
                f"the run has not ended within {self._settings.timeout_s:.0f} s; the same command "
                "goes on from what has been measured"
            )


class _Logs:
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
            marks.get(f"{_LABEL}replicatedjob-name") == self._watched.head_job
            and marks.get(f"{_LABEL}job-index") == "0"
            and marks.get(_POD_INDEX, "0") == "0"
        )

    def look(self, pods: Sequence[Object]) -> None:
        """Keeps the logs of what has failed, and follows that of host 0."""
        for pod in pods:
            for status in _containers(pod):
                self._keep_failed(pod, status)
            if pod.get("status", {}).get("phase") == "Failed" and not _containers(pod):
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
        status = _container(pod, self._watched.container)
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
            status = _container(found, self._watched.container)
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

    from orbax_bench_core.records import write_atomically

    path = epath.Path(output_directory) / "logs" / "pods" / name
    try:
        write_atomically(path, log)
    except Exception:  # noqa: BLE001 - every client of a store has its own errors
        here = Path(tempfile.mkdtemp(prefix="orbax-bench-pods-")) / name
        here.write_bytes(log)
        return str(here)
    return str(path)


def _terminal(found: Object) -> str:
    return str(found.get("status", {}).get("terminalState", ""))


def _condition(found: Object, kind: str) -> Object:
    """Returns a condition that holds; empty where it does not."""
    for condition in found.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == "True":
            return dict(condition)
    return {}


def _suspended(found: Object) -> bool:
    return bool(found.get("spec", {}).get("suspend") or _condition(found, "Suspended"))


def _containers(pod: Object) -> list[Object]:
    return list(pod.get("status", {}).get("containerStatuses") or ())


def _container(pod: Object, name: str) -> Object:
    return next((each for each in _containers(pod) if each["name"] == name), {})


def _exit_code(pod: Object, container: str) -> int:
    """Returns with which code a container ended last; 0 where it has not."""
    status = _container(pod, container)
    for key in ("state", "lastState"):
        ended = status.get(key, {}).get("terminated")
        if ended:
            return int(ended.get("exitCode", 0))
    return 0


def _has_run(pod: Object) -> bool:
    """Says whether all containers of a pod run or have run."""
    states = [status.get("state", {}) for status in _containers(pod)]
    return bool(states) and all({"running", "terminated"} & state.keys() for state in states)


def _reasons(pods: Sequence[Object]) -> str:
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
    return "".join(f"; {name}: {reason}" for reason, name in list(found.items())[:3])


def _reference(owner: Object) -> Object:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
