"""Places on storage, as somebody has named them: paths, no links below them, and gs:// URIs."""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import functools
import glob
import http.client
import os
import re
import shutil
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from etils import epath

    AnyPath: TypeAlias = epath.Path
else:
    AnyPath = Any
"""A path on disk or in a bucket, for annotations: the library takes long to import."""

Given = TypeVar("Given")
Done = TypeVar("Done")
_AT_ONCE: Final = 16
_REMOTE: Final = "gs://"
_LACKING: Final = re.compile(r"(gs|s3|file):(?!//)")
"""Beginnings of addresses with too few slashes, which would name a folder `gs:` here."""
_LONGEST: Final = 4096
"""Characters of a path; Linux takes as many bytes."""


def place(named: AnyPath | str) -> AnyPath:
    """Returns the place that a path or a URI names."""
    from etils import epath

    path, unknown = _understood(str(named))
    if "\x00" in path:
        raise OSError(errno.EINVAL, "No file has a NUL in its name", path)
    if unknown is not None:
        said = "local paths and gs:// only are read and written"
        raise OSError(errno.EPROTONOSUPPORT, said, path)
    if path.startswith(_REMOTE):
        check_credentials(_REMOTE + path.removeprefix(_REMOTE).partition("/")[0])
    return epath.Path(path)


def absolute(path: str) -> AnyPath:
    """Makes a local path absolute, which Orbax requires; addresses stay as they are."""
    found = place(path)
    return found if "://" in str(found) else found.expanduser().resolve()


def matching(folder: AnyPath, pattern: str) -> Iterator[AnyPath]:
    """Yields what matches a pattern below a folder, whose own name may be no pattern.

    The `glob` of epath takes the brackets of a folder `results[1]` for some.
    """
    yield from type(folder)(glob.escape(os.fspath(folder))).glob(pattern)


def checked_path(path: str) -> str:
    """Returns `path` in full: a local path is made absolute, a `gs://` URI stays."""
    if not path.strip():
        raise ValueError("the path is empty; name a directory, `.` for the one that this runs in")
    if "\x00" in path or len(path) > _LONGEST:
        raise ValueError(f"cannot use {path[:80]!r}: no file system has such a name")
    if lacking := _LACKING.match(path):
        raise ValueError(
            f"an address begins with {lacking[1]}://, got {path!r}; a folder that is called so "
            f"is ./{path}"
        )
    path, unknown = _understood(path)
    if unknown is not None:
        raise ValueError(
            f"cannot use {path!r}: Orbax reads and writes local paths and gs:// only, and would "
            f"put {unknown}:// data into a local folder of that name without saying so"
        )
    if path.startswith(_REMOTE):
        return path.rstrip("/")
    full = str(Path(path).expanduser().absolute())
    if full.encode(errors="replace").decode() != full:
        raise ValueError(
            f"cannot use {full!r}: its bytes are no UTF-8, so that no file can name it; rename it"
        )
    return full


def without_detours(path: str) -> str:
    """Returns a path in full without `..`, where that names the same place; links stay as named.

    An address stays as it is, and so does the way up from where a link leads.
    """
    if path.startswith(_REMOTE) or ".." not in Path(path).parts:
        return path
    direct = os.path.normpath(path)
    return direct if os.path.realpath(direct) == os.path.realpath(path) else path


def _understood(named: str) -> tuple[str, str | None]:
    """Returns the given path without `file://`, and its scheme if that is not understood.

    That of `://` is empty, and not understood either.
    """
    scheme, separator, rest = named.partition("://")
    if not separator or named.startswith(_REMOTE):
        return named, None
    return (rest, None) if scheme == "file" else (named, scheme)


PASSPORT: Final = "passport.json"
"""Noise of this machine, as the user has measured it."""


def user_cache(name: str) -> Path:
    """Returns a path below `$XDG_CACHE_HOME/orbax-bench`, or else `~/.cache/orbax-bench`."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "orbax-bench" / name


_SAID: Final = (
    "A link, through which nothing is written or removed; remove it, and name another disk as the "
    "run directory itself or by `storage` of the suite"
)


def refuse_links(path: AnyPath | str, root: AnyPath | str) -> None:
    """Refuses a path that a link below `root` may lead anywhere.

    `root` itself may be a link, or lie behind one: somebody has named it. Cloud Storage has none.
    """
    way, top = os.fspath(path), os.fspath(root).rstrip("/")
    if "://" in way:
        return
    for part in way.removeprefix(f"{top}/").split("/"):
        top = f"{top}/{part}"
        if os.path.islink(top):
            raise OSError(errno.ELOOP, _SAID, top)


def remove_tree(path: AnyPath, root: AnyPath | str) -> None:
    """Removes what is at a path below `root`: a folder with all in it, or a link, not its end."""
    local = os.fspath(path)
    if "://" in local:
        if path.exists():
            path.rmtree()
        return
    refuse_links(os.path.dirname(local), root)
    if os.path.islink(local):
        os.unlink(local)
    elif os.path.exists(local):
        shutil.rmtree(local)


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
    request = urllib.request.Request(f"http://{address}", headers={"Metadata-Flavor": "Google"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=_WITHIN_S) as answer:
            return bool(answer.headers.get("Metadata-Flavor") == "Google")
    except (OSError, ValueError, http.client.HTTPException):
        return False


def at_once(do: Callable[[Given], Done], given: Iterable[Given]) -> list[Done]:
    """Returns `do`'s result for each of `given`: a store answers many requests as fast as one.

    Results are in the order of what was given.
    """
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, given))
