"""Writing of a morning page into a folder, and again when a run has ended."""

from collections.abc import Iterable
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports.site.cards import Cards
from orbax_bench_core.exports.site.gathering import Site, gather
from orbax_bench_core.exports.site.view import site_document
from orbax_bench_core.exports.site_folder import note_places, noted_places
from orbax_bench_core.files import AnyPath, place, write_atomically

PAGE: Final = "index.html"
MOST_RUNS: Final = 60
"""Runs of a suite on a page, unless told otherwise: a season of nights."""


def write_site(places: Iterable[str], folder: str, *, most: int = MOST_RUNS) -> Site:
    """Writes `index.html`, `site.json` and what finished runs say into a folder, local or gs://.

    Args:
        places: Folders with run directories below them, or patterns.
        folder: Where the pages go; runs below it write them again.
        most: Runs of each suite that are shown, the newest.

    Raises:
        UserError: A path is empty.
        OSError: A page cannot be written.
    """
    given, root = list(places), place(folder)
    if not all(given):
        raise UserError("the path of a folder is empty; name one, or `.` for this one")
    cards = Cards(root)
    site = gather(given, most=most, cards=cards)
    note_places(folder, given, most)
    write_atomically(root / PAGE, pages.to_html(site_document(site, root)).encode())
    cards.write()
    return site


def renew_site(folder: AnyPath) -> None:
    """Writes the page of a folder again, with the places that it was made from."""
    places, most = noted_places(folder)
    write_site(places, str(folder), most=most)
