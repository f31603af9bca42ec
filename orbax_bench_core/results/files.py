"""Writing a file so that it is either there in full or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etils import epath


def write_atomically(path: epath.Path, data: bytes) -> None:
    """Writes `data` to `path`; a crash at any moment leaves the old file or the new one.

    Args:
        path: Local path or gs:// object; its parent is created.
        data: The whole content.

    Raises:
        OSError: The file cannot be written, for example because the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if "://" in str(path):
        path.write_bytes(data)  # an object store shows an object once it is complete
        return
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
