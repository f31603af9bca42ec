"""Writing of a morning page, and of what lets every later run write it again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import place, read_json, write_atomically

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.exports.site.gathering import Site

PAGE: Final = "index.html"
MOST_RUNS: Final = 60
"""Runs of a suite on a page, unless told otherwise: a season of nights."""

_SETTINGS: Final = "site.json"


def write_site(places: Iterable[str], folder: str, *, most: int = MOST_RUNS) -> Site:
    """Writes `index.html` and `site.json` into a folder, local or gs://.

    What the records of finished runs say is kept beside them, and is not read again.
    """
    from orbax_bench_core.document import to_html
    from orbax_bench_core.exports.site.cards import Cards
    from orbax_bench_core.exports.site.gathering import gather
    from orbax_bench_core.exports.site.view import site_document

    given, root = list(places), place(folder)
    if not all(given):
        raise UserError("the path of a folder is empty; name one, or `.` for this one")
    cards = Cards(root)
    site = gather(given, most=most, cards=cards)
    kept = [_kept(place, folder) for place in given]
    settings = {"schema_version": 1, "places": kept, "most": most}
    write_atomically(root / _SETTINGS, json.dumps(settings, indent=1).encode())
    write_atomically(root / PAGE, to_html(site_document(site, root)).encode())
    cards.write()
    return site


def has_site(folder: epath.Path) -> bool:
    """Returns whether a folder has a page that runs write again; no, where it cannot be asked."""
    if str(folder).endswith("//"):
        return False
    try:
        return bool(place(folder / _SETTINGS).exists())
    except (OSError, ImportError, ValueError):
        return False


def renew_site(folder: epath.Path) -> None:
    """Writes the page of a folder again, with the places that it was made from."""
    path = folder / _SETTINGS
    try:
        settings = read_json(path)
        places = [_found(str(place), folder) for place in settings["places"]]
        most = int(settings["most"])
    except (ValueError, KeyError, TypeError, OverflowError):
        raise UserError(f"{path} is none that `orbax-bench site` has written") from None
    write_site(places, str(folder), most=most)


def _kept(place: str, folder: str) -> str:
    """Returns a place as the settings of a page have it: of one disk, relative to the page.

    Later runs begin in other folders, and a folder of pages may be moved as a whole.
    """
    if "://" in place:
        return place
    if "://" in folder:
        return os.path.abspath(place)  # noqa: PTH100 - nothing is resolved
    return os.path.relpath(place, folder)


def _found(place: str, folder: epath.Path) -> str:
    return place if "://" in place else os.path.normpath(os.path.join(str(folder), place))  # noqa: PTH118
