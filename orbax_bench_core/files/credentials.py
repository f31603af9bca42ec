"""Credentials for Cloud Storage: whether there are any, found out within seconds."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EMULATOR: Final = "STORAGE_EMULATOR_HOST"
"""Variable with the address of an emulator, which asks for no credentials."""
_KEY_FILE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_USERS_FILE: Final = "application_default_credentials.json"
_OF_CLIENT: Final = ("FSSPEC_GCS_TOKEN", "FSSPEC_GS_TOKEN")
"""Variables by which gcsfs is given a token, or none for buckets that are public."""
_ON_GOOGLE: Final = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "KUBERNETES_SERVICE_HOST")
_PRODUCT: Final = Path("/sys/class/dmi/id/product_name")
_METADATA: Final = "169.254.169.254"
_WITHIN_S: Final = 3.0
"""Seconds for which a metadata server may think that nothing but its answer tells of."""
_REMEDY: Final = (
    "run `gcloud auth application-default login`, or name the key file of a service account by "
    f"{_KEY_FILE}; a public bucket needs FSSPEC_GCS_TOKEN=anon, and an emulator its address in "
    f"{EMULATOR}"
)


def check_credentials(named: str, environment: Mapping[str, str] = os.environ) -> None:
    """Checks that there are credentials for Cloud Storage, within three seconds.

    Its clients ask for a metadata server again and again, each for itself: that took 35 to 50 s
    where there was none. Where the machine is Google's, or in a cluster, they are left to it: such
    a server may take long to come up. Whether credentials are good, only the service knows.

    Raises:
        OSError: There are none, or the key file that is named is not there (EPERM).
    """
    given = environment.get(_KEY_FILE)
    if any(map(environment.get, (EMULATOR, *_OF_CLIENT))):
        return
    if given:
        if not Path(given).is_file():
            said = f"{_KEY_FILE} names {given}, where no file is: {_REMEDY}"
            raise OSError(errno.EPERM, said, named)
    elif not (_of_user(environment).is_file() or _on_google(environment)):
        raise OSError(errno.EPERM, f"No credentials for Cloud Storage: {_REMEDY}", named)


def _of_user(environment: Mapping[str, str]) -> Path:
    """Returns the file that `gcloud auth application-default login` writes."""
    home = os.path.expanduser("~/.config/gcloud")
    return Path(environment.get("CLOUDSDK_CONFIG") or home, _USERS_FILE)


def _on_google(environment: Mapping[str, str]) -> bool:
    """Returns whether there may be a metadata server, which has credentials."""
    if environment.get("NO_GCE_CHECK") == "true":
        return False
    with contextlib.suppress(OSError):
        if _PRODUCT.read_text().startswith("Google"):
            return True
    return any(map(environment.get, _ON_GOOGLE)) or _answers(
        environment.get("GCE_METADATA_IP") or _METADATA
    )


@functools.cache
def _answers(address: str) -> bool:
    # With TLS they are a tenth of what every command and worker imports; few ask.
    import http.client
    import urllib.request

    request = urllib.request.Request(f"http://{address}", headers={"Metadata-Flavor": "Google"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=_WITHIN_S) as answer:
            return bool(answer.headers.get("Metadata-Flavor") == "Google")
    except (OSError, ValueError, http.client.HTTPException):
        return False
