"""Course of a launch on Kubernetes: created, followed to its end, its logs kept, deleted."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.launchers import statuses
from orbax_bench_core.launchers.kubernetes import FINGERPRINT, OURS, KubernetesSettings
from orbax_bench_core.launchers.kubernetes_api import KubernetesApi, Object, Refused, connected
from orbax_bench_core.launchers.launch import interrupted_by_sigterm
from orbax_bench_core.launchers.pod_logs import LABEL, Logs
from orbax_bench_core.launchers.watched import Watched

_WATCH_S: Final = 10
"""Seconds after which the server ends a watch; pods are looked at again at least as often."""
_SETTLE_S: Final = 0.3
"""Seconds for which further changes are waited for: they come in bursts."""
_GONE_S: Final = 90.0
"""Longest wait for what was deleted to be gone, so that the same name can be used again."""
_POLL_S: Final = 1.0
_LAST_LINES_S: Final = 10.0
"""Longest wait for the last lines of a log."""
_DONE: Final = ("Completed", "Complete")
"""Terminal states of success: JobSet's word and PathwaysJob's."""


def followed(watched: Watched, settings: KubernetesSettings, *, before: Callable[[], None]) -> int:
    """Creates an object, follows it to its end, and deletes it."""
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
        """Describes it; `run` does it."""
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
        self._logs = Logs(api, self._core, watched)
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
            return int(Exit.INTERRUPTED)
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
        """An object of the same launch that still runs; None after removing a finished one."""
        found = self._api.get(self._path)
        if found is None:
            return None
        metadata = found["metadata"]
        ours = OURS.items() <= metadata.get("labels", {}).items()
        if ours and statuses.terminal(found):
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
        metadata = secret["metadata"] | {"ownerReferences": [statuses.reference(owner)]}
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
        return statuses.reference({"apiVersion": "v1", "kind": "Pod", **pod})

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
            self._waiting.look(
                suspended=statuses.suspended(found), pods=pods, hosts=self._watched.hosts
            )
            self._await_change(found)

    def _pods(self) -> list[Object]:
        selector = f"{LABEL}jobset-name={self._name}"
        found = self._api.get(f"{self._core}/pods", labelSelector=selector)
        return [] if found is None else list(found["items"])

    def _ended(self, found: Object, pods: Sequence[Object]) -> int | None:
        """Returns the exit code once all has ended; None before."""
        for pod in pods:
            if self._logs.is_head(pod):
                self._code = statuses.exit_code(pod, self._watched.container) or self._code
        state = statuses.terminal(found)
        if state in _DONE:
            return 0
        if state:
            _say(f"{self._called} failed: {statuses.condition(found, 'Failed').get('message', '')}")
            return self._code or 1
        if self._code == Exit.INVALID:
            _say("host 0 refused to run, and would again")
            return self._code
        return None

    def _tell(self, found: Object, pods: Sequence[Object]) -> None:
        """Says how far it is, where that has changed."""
        if statuses.suspended(found):
            queue = self._settings.queue
            said = f"waits in the queue {queue} of Kueue" if queue else "is suspended"
        else:
            running = sum(map(statuses.has_run, pods))
            said = f"{running} of {self._watched.hosts} pods run{statuses.reasons(pods)}"
        restarts = found.get("status", {}).get("restarts", 0)
        if restarts:
            said += f"; all were restarted {restarts} times"
        if said != self._last_said:
            self._last_said = said
            _say(f"{self._called}: {said}")

    def _await_change(self, found: Object) -> None:
        """Waits until the object changes, or for some seconds.

        What is true is always asked for again, so a watch that the server ends, or for which the
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
        """Counts the time since the last look."""
        passed, self._seen = self._clock() - self._seen, self._clock()
        if suspended:
            return
        self._active += passed
        all_run = sum(map(statuses.has_run, pods)) >= hosts
        self._starting = 0.0 if all_run else self._starting + passed
        if self._starting > self._settings.start_timeout_s:
            raise UserError(
                f"not all of {hosts} pods ran within {self._settings.start_timeout_s:.0f} s"
                f"{statuses.reasons(pods)}; --set start_timeout_s=SECONDS waits longer"
            )
        if self._settings.timeout_s is not None and self._active > self._settings.timeout_s:
            raise UserError(
                f"the run has not ended within {self._settings.timeout_s:.0f} s; the same command "
                "goes on from what has been measured"
            )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
