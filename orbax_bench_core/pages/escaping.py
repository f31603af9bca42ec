"""Texts of others in HTML, where nothing of them is markup."""

import functools
import html
import re
from typing import Final

from orbax_bench_core.errors import presentable
from orbax_bench_core.pages.numbers import UNIT

_UNBROKEN: Final = re.compile(rf"(\d) (?={UNIT})")


@functools.lru_cache(maxsize=4096)  # a page says the same again and again
def escaped(text: str) -> str:
    """Returns a text that stands for itself between tags and within quotes."""
    return html.escape(_UNBROKEN.sub("\\1\u00a0", presentable(text)))


def inline(text: str) -> str:
    """Returns a text in which names in backticks are set as code."""
    parts = re.split("`([^`]+)`", text)
    return "".join(
        f"<code>{escaped(part)}</code>" if at % 2 else escaped(part)
        for at, part in enumerate(parts)
    )
