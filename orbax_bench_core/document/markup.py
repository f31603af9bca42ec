"""Markup of pages: tags and text in which everything that is not ours is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NewType

from orbax_bench_core.document.elements import Paragraph, Span, Text, spans
from orbax_bench_core.document.numbers import UNIT
from orbax_bench_core.errors import presentable

_UNBROKEN: Final = re.compile(rf"(\d) (?={UNIT})")
_SAFE: Final = re.compile(r"(?i)https?://|file://|(?![a-z][a-z0-9+.-]*:)[^/]")
"""Addresses that are linked to: of web pages and files, and relative ones."""
Safe = NewType("Safe", str)
"""Text of a page in which everything that is not ours is escaped."""
NOTHING: Final = Safe("")
_ENTITIES: Final = {"&": "&amp;", ">": "&gt;", "<": "&lt;", "'": "&#39;", '"': "&#34;"}
_QUOTED: Final = re.compile(r"`([^`]+)`")


def tag(name: str, inside: Safe, **attributes: str) -> Safe:
    """Returns an element; an attribute `class_` is a class, and an empty one is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value
    )
    return Safe(f"<{name}{given}>{inside}</{name}>")


def joined(parts: Iterable[Safe], between: str = "") -> Safe:
    """Returns parts of a page as one."""
    return Safe(between.join(parts))


def plain(text: str) -> Safe:
    """Returns a text of others as it is shown; a number and its unit stay on one line."""
    return escaped(_UNBROKEN.sub("\\1\u00a0", presentable(text)))


def escaped(text: str) -> Safe:
    """Returns text that stands for itself between tags and within quotes."""
    for char, entity in _ENTITIES.items():
        text = text.replace(char, entity)
    return Safe(text)


def sentence(paragraph: Paragraph) -> Safe:
    """Returns a paragraph with its mark before it."""
    parts = [inline(paragraph.mark), inline(paragraph.text)]
    return joined(filter(None, parts), " ")


def inline(text: Text) -> Safe:
    """Returns a text with its spans."""
    return joined(map(piece, spans(text)))


def piece(given: str | Span) -> Safe:
    """Returns one span, or a text in which what is between backquotes is code."""
    if isinstance(given, str):
        return Safe(_QUOTED.sub(r"<code>\1</code>", plain(given)))
    text = tag("code", plain(given.text)) if given.code else plain(given.text)
    looks = f"{role_class(given.role)} {'strong' if given.strong else ''}".strip()
    text = tag("span", text, class_=looks) if looks else text
    return tag("a", text, href=given.href) if _SAFE.match(given.href) else text


def role_class(role: str) -> str:
    """Returns the class of a role; empty for that of all other text."""
    return "" if role == "plain" else role
