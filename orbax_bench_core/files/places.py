"""Places on storage, as somebody has named them: local paths, and `gs://` URIs."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.files.credentials import require_credentials

if TYPE_CHECKING:
    from etils import epath

_REMOTE: Final = "gs://"
_LACKING: Final = re.compile(r"(gs|s3|file):(?!//)")
"""Beginnings of addresses with too few slashes, which would name a folder `gs:` here."""
_LONGEST: Final = 4096
"""Characters of a path; Linux takes as many bytes."""


def place(named: epath.Path | str) -> epath.Path:
    """Returns the place that a path or a URI names."""
    from etils import epath

    path, unknown = _understood(str(named))
    if "\x00" in path:
        raise OSError(errno.EINVAL, "No file has a NUL in its name", path)
    if unknown is not None:
        said = "local paths and gs:// only are read and written"
        raise OSError(errno.EPROTONOSUPPORT, said, path)
    if path.startswith(_REMOTE):
        require_credentials(path.removeprefix(_REMOTE).partition("/")[0])
    return epath.Path(path)


def absolute(path: str) -> epath.Path:
    """Makes a local path absolute, which Orbax requires; addresses stay as they are."""
    found = place(path)
    return found if "://" in str(found) else found.expanduser().resolve()


def matching(folder: epath.Path, pattern: str) -> Iterator[epath.Path]:
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
    """Returns what was named, without `file://`, and its scheme where that is not understood.

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
