"""Google's metadata server, which tells a virtual machine with TPUs its place."""

import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_HOST = "GCE_METADATA_HOST"
_SERVER = "169.254.169.254"
"""Address of `metadata.google.internal`: elsewhere, looking for the name can take many seconds."""

_PATH = "/computeMetadata/v1/instance/attributes/"
_FLAVOR: Final = {"Metadata-Flavor": "Google"}
_TIMEOUT_S = 1.0
_MOST_BYTES = 2**20
_PASSING: Final = (429, 500, 502, 503, 504)
"""Statuses of a server that is starting or has too much to do: it is asked again."""
WAIT_S = 600.0
"""How long a server that is starting is waited for: as long as hosts may take to join."""
_PAUSE_S = 1.0
_DEVICES = ("accel*", "vfio")


def has_tpu_devices() -> bool:
    """Returns whether this machine has devices that may be TPUs."""
    return any(any(Path("/dev").glob(pattern)) for pattern in _DEVICES)


def server(environment: Mapping[str, str]) -> str:
    """Returns where the metadata server is, as `host` or `host:port`."""
    return environment.get(_HOST) or _SERVER


def attribute(key: str, environment: Mapping[str, str], *, expected: bool = False) -> str | None:
    """Returns an attribute of this machine; None for one that it does not have.

    Args:
        key: Name of the attribute.
        environment: Variables, which may name another server.
        expected: Whether there is one for certain, so that any failure may pass.

    Raises:
        OSError: No server answers, for as long as one may take to start.
    """
    deadline, told = time.monotonic() + WAIT_S, False
    while True:
        try:
            return _ask(key, environment)
        except _NoServer:
            raise
        except OSError as error:
            starting = expected or isinstance(error, _Starting)
            if not starting or time.monotonic() > deadline:
                raise
            if not told:
                where = server(environment)
                print(f"waiting for the metadata server at {where}: {error}", file=sys.stderr)
                told = True
            time.sleep(_PAUSE_S)


class _Starting(ConnectionError):
    """The server cannot answer yet."""


class _NoServer(ConnectionError):
    """What answers is no metadata server."""


def _ask(key: str, environment: Mapping[str, str]) -> str | None:
    import http.client

    connection = http.client.HTTPConnection(server(environment), timeout=_TIMEOUT_S)
    try:
        connection.request("GET", _PATH + key, headers=dict(_FLAVOR))
        answer = connection.getresponse()
        if answer.status in _PASSING:
            raise _Starting(f"it answers {answer.status} for {key}")
        if answer.headers.get("Metadata-Flavor") != "Google":
            raise _NoServer("what answers there is no metadata server of Google Cloud")
        text = answer.read(_MOST_BYTES).decode()
        if answer.status == http.client.NOT_FOUND:
            return None
        if answer.status != http.client.OK:
            raise _NoServer(f"it answers {answer.status} for {key}")
    except http.client.RemoteDisconnected:
        raise  # it may be starting
    except (http.client.HTTPException, UnicodeDecodeError) as error:
        raise _NoServer(f"it answers what cannot be read: {error}") from None
    finally:
        connection.close()
    return text.strip()


def worker_addresses(endpoints: str) -> list[str]:
    """Returns the addresses in `worker-network-endpoints`, in the order of the slice."""
    # Newer machines list `address,address`, older ones `name:id:address,...`.
    entries = [entry.strip() for entry in endpoints.split(",") if entry.strip()]
    return [entry.split(":", 2)[2] if entry.count(":") == 2 else entry for entry in entries]


def setting(key: str, text: str) -> str:
    """Returns a value of `tpu-env`, whose lines are `KEY: 'value'`; empty if it has none."""
    found = re.search(rf"^{re.escape(key)}\s*:\s*(.*?)\s*$", text, re.MULTILINE)
    return "" if found is None else found[1].strip("'\"")
