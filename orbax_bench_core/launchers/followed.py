"""Course of a launch on Kubernetes: created, followed to its end, its logs kept, deleted."""

import os
import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import urllib3
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.launchers import kubernetes, kubernetes_settings, pods
from orbax_bench_core.launchers.launch import GRACE_S, say

_PATIENCE: Final = urllib3.Retry(
    10,
    backoff_factor=0.5,
    backoff_max=60,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
)
"""Asks again for four minutes, as a control plane is upgraded in minutes. That is harmless: what is
created has a name, so that what a failed request has created is found."""
_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_WATCH_S: Final = 10
"""Seconds after which the server ends a watch; pods are looked at again at least as often."""
_PAUSE_S: Final = 1.0
"""Seconds between two looks, in which further changes arrive: they come in bursts."""
_GONE_S: Final = 90
"""Longest wait for what was deleted to be gone, so that the same name can be used again."""
_LAST_LINES_S: Final = 10.0
"""Longest wait for the last lines of a log."""
_DONE: Final = ("Completed", "Complete")
"""Terminal states of success: JobSet's word and PathwaysJob's."""


def followed(job: kubernetes.PodsLauncher) -> int:
    """Creates an object, follows it to its end, and deletes it; returns the exit code of host 0."""
    configuration, namespace, in_pod = _cluster(job.settings)
    configuration.retries = _PATIENCE
    with client.ApiClient(configuration) as api:
        return _Course(api, namespace, job, in_pod=in_pod).run()


def _cluster(settings: kubernetes_settings.KubernetesSettings) -> tuple[Any, str, bool]:
    """Returns how to reach the cluster, the namespace, and whether this is one of its pods."""
    configuration = client.Configuration()
    context, file = settings.context, settings.kubeconfig
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and not (context or file)
    try:
        if in_pod:
            config.load_incluster_config(client_configuration=configuration)
            own = _OWN_NAMESPACE.read_text().strip()
        else:
            file = file or os.environ.get("KUBECONFIG")
            config.load_kube_config(file, context, client_configuration=configuration)
            contexts, active = config.list_kube_config_contexts(file)
            chosen = next((each for each in contexts if each["name"] == context), active)
            own = chosen.get("context", {}).get("namespace") or "default"
    except (config.ConfigException, OSError) as error:
        raise UserError(
            f"no Kubernetes cluster to launch on: {error}. Give --set kubeconfig=FILE or "
            "context=NAME; `gcloud container clusters get-credentials` writes that of GKE"
        ) from None
    return configuration, settings.namespace or own, in_pod


class _Course:
    """One launch on Kubernetes, from its creation to its end."""

    def __init__(
        self, api: Any, namespace: str, job: kubernetes.PodsLauncher, *, in_pod: bool
    ) -> None:
        self._host = api.configuration.host
        self._objects, self._core = client.CustomObjectsApi(api), client.CoreV1Api(api)
        self._job, self._in_pod = job, in_pod
        self._namespace, self._name = namespace, job.launch.name
        self._kind = {
            "group": job.kind.group,
            "version": job.kind.version,
            "namespace": namespace,
            "plural": job.kind.plural,
            "_request_timeout": pods.TIMEOUT_S,
        }
        self._one = {**self._kind, "name": self._name}
        self._called = f"{job.kind.name} {namespace}/{self._name}"
        self._remove = f"kubectl delete {job.kind.plural} {self._name} -n {namespace}"
        self._manifest = job.manifest()
        self._logs = pods.Logs(self._core, namespace, job)
        self._seen, self._active, self._starting = time.monotonic(), 0.0, 0.0
        self._last_said = ""
        self._code = 0
        self._passed: float | None = None  # when host 0 was first seen to have ended with 0
        self._ours = False

    def run(self) -> int:
        """Creates all, follows it, and deletes it."""
        wait_s = 0.0
        try:
            self._create()
            code = self._follow()
            wait_s = _LAST_LINES_S
        except (ApiException, HTTPError) as error:
            raise UserError(self._why(error)) from None
        except KeyboardInterrupt:
            say("interrupted; the same command goes on from what has been measured")
            return int(Exit.INTERRUPTED)
        else:
            return code
        finally:
            self._logs.finish(wait_s)
            self._clear()

    def _create(self) -> None:
        """Creates the object, unless one of the same launch still runs."""
        made, new = self._one_that_exists(), False
        while made is None:
            new = True
            self._job.shipment.send()
            metadata = {**self._manifest["metadata"], **self._owner()}
            create = self._objects.create_namespaced_custom_object
            body = {**self._manifest, "metadata": metadata}
            made = (
                pods.unless(409, partial(create, **self._kind, body=body))
                or self._one_that_exists()
            )
        self._ours = True
        say(f"{'created' if new else 'going on with'} {self._called}")
        secret = self._job.secret(secrets.token_hex(32))
        if secret is None:
            return
        if new:  # one may be left by a launch whose object is gone
            self._delete_secret(secret)
        metadata = {**secret["metadata"], "ownerReferences": [_reference(made)]}
        create = self._core.create_namespaced_secret
        body = {**secret, "metadata": metadata}
        pods.unless(409, partial(create, self._namespace, body, _request_timeout=pods.TIMEOUT_S))

    def _get(self) -> kubernetes.Object | None:
        return pods.unless(404, partial(self._objects.get_namespaced_custom_object, **self._one))

    def _one_that_exists(self) -> kubernetes.Object | None:
        """An object of the same launch that still runs; None after removing a finished one."""
        found = self._get()
        if found is None:
            return None
        metadata = found["metadata"]
        ours = kubernetes.OURS.items() <= metadata.get("labels", {}).items()
        if ours and _terminal(found):
            self._delete()
            return None
        wanted = self._manifest["metadata"]["annotations"][kubernetes.FINGERPRINT]
        if ours and metadata.get("annotations", {}).get(kubernetes.FINGERPRINT) == wanted:
            return found
        raise UserError(
            f"{self._called} is there already, and runs something else. Choose another --name, or "
            f"end it: {self._remove}"
        )

    def _owner(self) -> kubernetes.Object:
        """Returns that the object goes with the pod that this runs in; empty outside of one."""
        name = os.environ.get("KFP_POD_NAME") or os.environ.get("HOSTNAME", "")
        if not (self._in_pod and name):
            return {}
        try:
            pod = pods.read(self._core, name, self._namespace)
        except (ApiException, HTTPError) as error:
            say(f"cannot look at pod {name}: {pods.reason(error)}")
            pod = None
        if pod is None:
            say(f"what is created outlives this pod if it is killed: it is not owned by {name}")
            return {}
        return {"ownerReferences": [_reference({"apiVersion": "v1", "kind": "Pod", **pod})]}

    def _follow(self) -> int:
        while True:
            found = self._get()
            if found is None:
                self._ours = False
                raise UserError(f"{self._called} was deleted by somebody else")
            those = pods.listed(self._core, self._name, self._namespace)
            self._logs.look(those)
            suspended = bool(found["spec"].get("suspend") or _condition(found, "Suspended"))
            self._tell(found, those, suspended=suspended)
            code = self._ended(found, those)
            if code is not None:
                return code
            self._count_time(those, suspended=suspended)
            self._await_change(found)

    def _ended(self, found: kubernetes.Object, those: Sequence[kubernetes.Object]) -> int | None:
        """Returns the exit code of the run once it is over; None before."""
        for pod in filter(self._logs.is_head, those):
            self._code = pods.exit_code(pod, self._job.container) or self._code
            if self._passed is None and pods.has_passed(pod, self._job.container):
                self._passed = time.monotonic()
        state = _terminal(found)
        if state in _DONE:
            return 0
        # A host that is made again at the very end waits for a host 0 that will not come.
        if self._passed is not None and (state or time.monotonic() - self._passed > GRACE_S):
            say("host 0 has ended with 0, and with it the run; what is left of it is deleted")
            return 0
        if state:
            say(f"{self._called} failed: {_condition(found, 'Failed').get('message', '')}")
            return self._code or 1
        if self._code == Exit.INVALID:
            say("host 0 refused to run, and would again")
            return self._code
        return None

    def _tell(
        self, found: kubernetes.Object, those: Sequence[kubernetes.Object], *, suspended: bool
    ) -> None:
        """Says how far it is, where that has changed."""
        if suspended:
            queue = self._job.settings.queue
            said = f"waits in the queue {queue} of Kueue" if queue else "is suspended"
        else:
            running = sum(map(pods.has_run, those))
            said = f"{running} of {self._job.pods} pods run{pods.reasons(those)}"
        restarts = found.get("status", {}).get("restarts", 0)
        if restarts:
            said += f"; all were restarted {restarts} times"
        if said != self._last_said:
            self._last_said = said
            say(f"{self._called}: {said}")

    def _count_time(self, those: Sequence[kubernetes.Object], *, suspended: bool) -> None:
        """Counts the time since the last look, in which the cluster could run pods."""
        passed, self._seen = time.monotonic() - self._seen, time.monotonic()
        if suspended:
            return
        settings, hosts = self._job.settings, self._job.pods
        self._active += passed
        all_run = sum(map(pods.has_run, those)) >= hosts
        self._starting = 0.0 if all_run else self._starting + passed
        if self._starting > settings.start_timeout_s:
            raise UserError(
                f"not all of {hosts} pods ran within {settings.start_timeout_s:.0f} s"
                f"{pods.reasons(those)}; --set start_timeout_s=SECONDS waits longer"
            )
        if settings.timeout_s is not None and self._active > settings.timeout_s:
            raise UserError(
                f"the run has not ended within {settings.timeout_s:.0f} s; the same command "
                "goes on from what has been measured"
            )

    def _await_change(self, found: kubernetes.Object) -> None:
        """Waits for a change, or some seconds; a watch may fail, for all is asked for again."""
        changes = watch.Watch().stream(
            self._objects.list_namespaced_custom_object,
            **self._kind,
            field_selector=f"metadata.name={self._name}",
            resource_version=found["metadata"]["resourceVersion"],
            timeout_seconds=_WATCH_S,
        )
        try:
            next(changes, None)
        except (ApiException, HTTPError):
            pass
        finally:
            changes.close()
        time.sleep(_PAUSE_S)

    def _clear(self) -> None:
        """Deletes what was created, or says how to."""
        if not self._ours:
            return
        if self._job.settings.keep:
            say(f"{self._called} is kept; remove it with: {self._remove}")
            return
        try:
            self._delete()
            secret = self._job.secret("")
            if secret is not None:
                self._delete_secret(secret)
        except (ApiException, HTTPError) as error:
            say(f"{self._called} could not be deleted ({pods.reason(error)}): {self._remove}")

    def _delete(self) -> None:
        """Deletes the object and what it owns, and waits until it is gone."""
        delete = self._objects.delete_namespaced_custom_object
        pods.unless(404, partial(delete, **self._one, propagation_policy="Foreground"))
        for _ in range(round(_GONE_S / _PAUSE_S)):
            if self._get() is None:
                return
            time.sleep(_PAUSE_S)
        say(f"{self._called} is still being deleted")

    def _delete_secret(self, secret: kubernetes.Object) -> None:
        delete, name = self._core.delete_namespaced_secret, secret["metadata"]["name"]
        pods.unless(404, partial(delete, name, self._namespace, _request_timeout=pods.TIMEOUT_S))

    def _why(self, error: Exception) -> str:
        if not isinstance(error, ApiException):
            return f"the Kubernetes API at {self._host} does not answer: {error}"
        remedy = {
            401: "docs/launch/jobset.md has the role that this takes",
            403: "docs/launch/jobset.md has the role that this takes",
            404: f"create the namespace, or {self._job.kind.remedy}",
        }.get(error.status, "--dry-run prints what was sent")
        return f"Kubernetes refuses {self._called} ({pods.reason(error)}); {remedy}"


def _terminal(found: kubernetes.Object) -> str:
    """Returns the word in which an object has ended; empty while it has not."""
    return str(found.get("status", {}).get("terminalState", ""))


def _condition(found: kubernetes.Object, kind: str) -> kubernetes.Object:
    """Returns a condition that holds; empty if it does not."""
    for condition in found.get("status", {}).get("conditions") or ():
        if condition["type"] == kind and condition["status"] == "True":
            return dict(condition)
    return {}


def _reference(owner: kubernetes.Object) -> kubernetes.Object:
    """Returns the object's reference to its owner, with which it is deleted."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
