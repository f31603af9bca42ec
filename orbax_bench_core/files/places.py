"""Places on storage, as somebody has named them: paths, no links below them, and gs:// URIs."""

from __future__ import annotations

import concurrent.futures
import errno
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from orbax_bench_core.files.credentials import check_credentials

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
    """Returns the place that a path or a URI names.

    Raises:
        OSError: It is of a scheme that is not read (EPROTONOSUPPORT), no file can be called so
            (EINVAL), or there are no credentials for its bucket (EPERM).
    """
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


def file_of_suite(what: str, suite: str) -> str:
    """Returns the name of the file about a suite that lies next to its run directories."""
    plain = re.sub(r"[^a-z0-9]+", "-", suite.lower()).strip("-")[:40]
    return f"{what}-{plain}-{hashlib.sha256(suite.encode()).hexdigest()[:8]}.json"


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
    """Returns `path` in full: a local path is made absolute, a `gs://` URI stays.

    Raises:
        ValueError: It is empty, too long, no text, or of a scheme that Orbax does not read; the
            message says what to do.
    """
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


def user_cache(name: str) -> Path:
    """Returns a path below `$XDG_CACHE_HOME/orbax-bench`, or else `~/.cache/orbax-bench`."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "orbax-bench" / name


def at_once(do: Callable[[Given], Done], given: Iterable[Given]) -> list[Done]:
    """Returns `do`'s result for each of `given`: a store answers many requests as fast as one.

    Results are in the order of what was given.
    """
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, given))
