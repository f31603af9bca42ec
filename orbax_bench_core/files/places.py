"""Places on storage, as somebody has named them: local paths, and `gs://` URIs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.files.credentials import require_credentials

if TYPE_CHECKING:
    from etils import epath

_REMOTE: Final = "gs://"


def place(named: epath.Path | str) -> epath.Path:
    """Returns the place that a path or a URI names.

    Raises:
        OSError: It is a URI of a scheme that nothing here reads and writes (`EPROTONOSUPPORT`), or
            in a bucket for which there are no credentials (`EPERM`).
    """
    from etils import epath

    path, unknown = _understood(str(named))
    if unknown:
        said = "local paths and gs:// only are read and written"
        raise OSError(errno.EPROTONOSUPPORT, said, path)
    if path.startswith(_REMOTE):
        require_credentials(path.removeprefix(_REMOTE).partition("/")[0])
    return epath.Path(path)


def checked_path(path: str) -> str:
    """Returns `path` in full: a local path is made absolute, a `gs://` URI stays.

    Raises:
        ValueError: The path is empty or no text, or the URI has a scheme that Orbax cannot write
            to.
    """
    if not path.strip():
        raise ValueError("the path is empty; name a directory, `.` for the one that this runs in")
    path, unknown = _understood(path)
    if unknown:
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


def _understood(named: str) -> tuple[str, str]:
    """Returns what was named, without `file://`, and its scheme where that is not understood."""
    scheme, separator, rest = named.partition("://")
    if not separator or named.startswith(_REMOTE):
        return named, ""
    return (rest, "") if scheme == "file" else (named, scheme)
