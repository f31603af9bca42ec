"""Buckets that a command line names: whether Cloud Storage can be used, before anything waits."""

import importlib.util
import logging
import os
import socket
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Final

_SERVICE: Final = "https://storage.googleapis.com"
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_CLIENTS: Final = ("gcsfs", "tensorflow")
"""Either of them reads and writes gs:// for `etils`."""
_WITHIN_S: Final = 5.0


def check_buckets(words: Iterable[str], environment: Mapping[str, str] = os.environ) -> None:
    """Checks that Cloud Storage can be used where a command line names a bucket."""
    # Its client libraries look for it, and for credentials, for up to a minute, and print a
    # traceback for each time. Behind a proxy nothing is asked: only the client knows the way.
    named = next((word for word in words if "gs://" in word), None)
    if named is not None and not any(map(importlib.util.find_spec, _CLIENTS)):
        from orbax_bench_core.errors import UserError

        raise UserError(f"{named}: Cloud Storage needs gcsfs: pip install 'orbax-bench[gcs]'")
    if named is None:
        return
    # What it raises is told once, by us.
    logging.getLogger("gcsfs").setLevel(logging.CRITICAL)
    from orbax_bench_core.files import check_credentials

    check_credentials(named, environment)
    if any(environment.get(name) for name in _PROXIES):
        return
    service = environment.get("STORAGE_EMULATOR_HOST") or _SERVICE
    address = urllib.parse.urlsplit(service if "://" in service else f"http://{service}")
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_WITHIN_S).close()
    except OSError as error:
        from orbax_bench_core.errors import UserError

        raise UserError(
            f"{named}: Cloud Storage cannot be reached at {address.hostname}:{port}: {error}; "
            "check the network and the name, or give local paths"
        ) from None
