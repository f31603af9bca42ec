"""Folder of a morning page: whether it has one, and the places that its page is made from.

What ends a run asks this of two folders, and rarely needs what makes the page.
"""

import json
import os
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, place, read_json, write_atomically

_SETTINGS: Final = "site.json"


def has_site(folder: AnyPath) -> bool:
    """Returns whether a folder has a page that runs write again; no, where it cannot be asked."""
    if str(folder).endswith("//"):
        return False
    try:
        return bool(place(folder / _SETTINGS).exists())
    except (OSError, ImportError, ValueError):
        return False


def note_places(folder: str, places: Sequence[str], most: int) -> None:
    """Writes from which places, and from how many runs of a suite, a page is made.

    Places of one disk are relative to the page: later runs begin in other folders, and a folder of
    pages may be moved as a whole.
    """

    def way(each: str) -> str:
        if "://" in folder:
            return os.path.abspath(each)  # noqa: PTH100 - nothing is resolved
        return os.path.relpath(each, folder)

    kept = [each if "://" in each else way(each) for each in places]
    settings = {"schema_version": 1, "places": kept, "most": most}
    write_atomically(place(folder) / _SETTINGS, json.dumps(settings, indent=1).encode())


def noted_places(folder: AnyPath) -> tuple[list[str], int]:
    """Returns the places that a page is made from, and from how many runs of a suite at most.

    Raises:
        UserError: The file is none that `note_places` has written.
    """
    path = folder / _SETTINGS
    try:
        settings = read_json(path)
        given, most = [str(each) for each in settings["places"]], int(settings["most"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise UserError(f"{path} is none that `orbax-bench site` has written") from None
    below = str(folder)
    return [
        each if "://" in each else os.path.normpath(os.path.join(below, each))  # noqa: PTH118
        for each in given
    ], most
