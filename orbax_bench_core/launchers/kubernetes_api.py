"""Client of a Kubernetes API server: few requests, and patience with a server that fails."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.errors import UserError

Object = dict[str, Any]
"""An object of Kubernetes as JSON has it."""

_TEMPORARY: Final = (429, 500, 502, 503, 504)
_PAUSES_S: Final = (0.5, 1, 2, 4, 8, 15, 30, 30, 30, 60, 60)
"""Seconds before each further try, four minutes in all: a control plane is upgraded in minutes."""
_CONNECT_S = 10.0
_READ_S = 60.0
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Refused(Exception):
    """The API server has refused a request.

    Attributes:
        status: HTTP status, such as 403.
        message: The server's own words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class KubernetesApi:
    """Requests to one API server.

    Attributes:
        namespace: Namespace that a launch is for.
        in_pod: Whether this process runs in a pod of that cluster.
    """

    def __init__(
        self, client: Any, namespace: str, *, in_pod: bool, sleep: Callable[[float], None]
    ) -> None:
        """Keeps a client of the `kubernetes` package; `connected` makes one."""
        self._client = client
        self.namespace = namespace
        self.in_pod = in_pod
        self._sleep = sleep

    def create(self, path: str, body: Object) -> Object:
        """Creates an object."""
        return self._request("POST", path, body=body)

    def get(self, path: str, **query: str | int) -> Object | None:
        """Returns an object or a list of them; None where there is none of that name."""
        try:
            return self._request("GET", path, query)
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def delete(self, path: str) -> bool:
        """Deletes an object and what it owns; returns whether there was one."""
        try:
            self._request("DELETE", path, {"propagationPolicy": "Foreground"})
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise
        return True

    def text(self, path: str, **query: str | int) -> bytes:
        """Returns a log."""
        data: bytes = self._attempts(lambda: self._raw("GET", path, query).data)
        return data

    def lines(
        self, path: str, timeout_s: float, **query: str | int
    ) -> Generator[bytes, None, None]:
        """Yields lines while the server sends them; a broken connection ends them."""
        import urllib3

        rest = b""
        with contextlib.suppress(urllib3.exceptions.HTTPError, OSError):
            response = self._raw("GET", path, query, read_s=timeout_s)
            try:
                for chunk in response.stream(amt=None):
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from lines
            finally:
                response.close()
        if rest:
            yield rest

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Object | None = None,
    ) -> Object:
        data = self._attempts(lambda: self._raw(method, path, query or {}, body).data)
        answer: Object = json.loads(data)
        return answer

    def _attempts(self, attempt: Callable[[], Any]) -> Any:
        """Returns what a request answers, which is repeated while the server fails."""
        import urllib3

        for pause in (*_PAUSES_S, None):
            try:
                return attempt()
            except Refused as refusal:
                if refusal.status not in _TEMPORARY:
                    raise
                last = str(refusal)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                last = str(error)
            if pause is not None:
                self._sleep(pause)
        raise UserError(
            f"the Kubernetes API at {self._client.configuration.host} does not answer, for "
            f"{sum(_PAUSES_S):.0f} s and {len(_PAUSES_S) + 1} tries: {last}"
        )

    def _raw(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: Object | None = None,
        read_s: float = _READ_S,
    ) -> Any:
        """Sends one request, and returns the response, whose body may still be on its way."""
        from kubernetes.client.exceptions import ApiException

        try:
            return self._client.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params={"Accept": "application/json, */*"},
                body=body,
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _preload_content=False,
                _request_timeout=(_CONNECT_S, read_s),
            )
        except ApiException as error:
            raise Refused(error.status or 0, _said(error)) from None


@contextlib.contextmanager
def connected(
    *,
    namespace: str | None,
    context: str | None,
    kubeconfig: str | None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[KubernetesApi]:
    """Connects to the cluster of a context, or to the one whose pod this runs in."""
    try:
        from kubernetes import client, config
    except ImportError:
        raise UserError(
            "cannot import `kubernetes`, the client that creates what is launched: "
            "pip install 'orbax-bench[kubernetes]', or save what --dry-run prints, with a token "
            "in it, and `kubectl apply` it"
        ) from None

    configuration = client.Configuration()
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and not (context or kubeconfig)
    try:
        if in_pod:
            config.load_incluster_config(client_configuration=configuration)
            own = _OWN_NAMESPACE.read_text().strip()
        else:
            file = kubeconfig or os.environ.get("KUBECONFIG")
            config.load_kube_config(file, context, client_configuration=configuration)
            own = _namespace(config, file, context)
    except (config.ConfigException, OSError) as error:
        raise UserError(
            f"no Kubernetes cluster to launch on: {error}. Give --set kubeconfig=FILE or "
            "context=NAME; `gcloud container clusters get-credentials` writes that of GKE"
        ) from None
    configuration.retries = False  # it would repeat what must be looked at first
    with client.ApiClient(configuration) as made:
        yield KubernetesApi(made, namespace or own, in_pod=in_pod, sleep=sleep)


def _namespace(config: Any, file: str | None, context: str | None) -> str:
    contexts, active = config.list_kube_config_contexts(file)
    chosen = next((each for each in contexts if each["name"] == context), active)
    return str(chosen.get("context", {}).get("namespace") or "default")


def _said(error: Any) -> str:
    """Returns why a server refuses, in its own words."""
    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
