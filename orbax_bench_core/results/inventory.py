"""What a checkpoint occupies on storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pydantic

if TYPE_CHECKING:
    from etils import epath


class Inventory(pydantic.BaseModel):
    """Files below a directory.

    Attributes:
        total_bytes: Sum of file sizes, in bytes.
        file_count: Number of files.
        largest_bytes: Size of the largest file, in bytes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    total_bytes: int
    file_count: int
    largest_bytes: int


def take_inventory(directory: epath.Path) -> Inventory:
    """Counts the files below `directory` and their sizes.

    Args:
        directory: A local or gs:// directory; one that does not exist is empty.
    """
    sizes = [
        (parent / name).stat().length for parent, _, names in directory.walk() for name in names
    ]
    return Inventory(
        total_bytes=sum(sizes), file_count=len(sizes), largest_bytes=max(sizes, default=0)
    )
