"""Pages that are made from the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from website.axes import proofs_page
from website.commands import commands_page
from website.python_api import api_page
from website.suite import suite_page

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/commands.md": commands_page,
    "reference/proofs.md": proofs_page,
    "reference/python.md": api_page,
    "reference/suite.md": suite_page,
}
"""Each page by its path below `docs`."""


def write() -> None:
    """Writes every page."""
    for name, make in PAGES.items():
        page = DOCS / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(make())
