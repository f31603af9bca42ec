"""Links of Markdown pages: where they lead, which of them are dead, pictures without a text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]*`")
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ELSEWHERE: Final = ("http://", "https://", "mailto:")


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """Returns a page with every link changed that leads to a place of the checkout."""

    def replace(found: re.Match[str]) -> str:
        mark, shown, target = found.groups()
        if target.startswith(_ELSEWHERE):
            return found.group()
        return f"{mark}[{shown}]({change(target)})"

    prose, code = _without_code(text)
    return re.sub("\0(\\d+)\0", lambda mark: code[int(mark.group(1))], _LINK.sub(replace, prose))


def anchors(text: str) -> set[str]:
    """Returns the anchors of the headings of a page, as GitHub and the site name them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        name = slug(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        number = 1
        while (anchor := name if number == 1 else f"{name}_{number - 1}") in found:
            number += 1
        found.add(anchor)
    return found


def slug(heading: str) -> str:
    """Returns the anchor of a heading: what remains in lower case, with dashes for blanks."""
    plain = unicodedata.normalize("NFKD", html.unescape(heading)).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def faults(page: Path, root: Path) -> Iterator[str]:
    """Yields what is wrong with the links and pictures of a page of the checkout.

    Args:
        page: A Markdown file below `root`.
        root: The checkout: no link may leave it.
    """
    text = page.read_text()
    for mark, shown, target in _LINK.findall(_without_code(text)[0]):
        if mark and not shown.strip():
            yield f"{page.relative_to(root)}: the picture {target} has no text in its place"
        if target.startswith(_ELSEWHERE):
            continue
        place, _, anchor = target.partition("#")
        file = (page.parent / place).resolve() if place else page
        if not file.is_relative_to(root) or not file.exists():
            yield f"{page.relative_to(root)}: {target} is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{page.relative_to(root)}: {target}: the page has no such heading"


def _without_code(text: str) -> tuple[str, list[str]]:
    """Returns a text with a number in place of each piece of code, and the pieces."""
    code: list[str] = []

    def keep(found: re.Match[str]) -> str:
        code.append(found.group())
        return f"\0{len(code) - 1}\0"

    def keep_all(expression: re.Pattern[str], within: str) -> str:
        return expression.sub(keep, within)

    prose = keep_all(_CODE, keep_all(_FENCE, text))
    # A fence that holds such a number cannot be: fences are taken first.
    return prose, code
