"""Places on storage, as somebody has named them: local paths, and `gs://` URIs."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etils import epath


def place(named: epath.Path | str) -> epath.Path:
    """Returns the place that a path or a URI names.

    Raises:
        OSError: It is a URI of a scheme that nothing here reads and writes (`EPROTONOSUPPORT`).
    """
    from etils import epath

    scheme, separator, rest = str(named).partition("://")
    if separator and scheme == "file":
        return epath.Path(rest)
    if separator and scheme != "gs":
        said = "local paths and gs:// only are read and written"
        raise OSError(errno.EPROTONOSUPPORT, said, str(named))
    return epath.Path(named)
