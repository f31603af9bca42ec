"""Numbers as text: durations, sizes and ratios, the same in every report."""

from __future__ import annotations

import functools
from typing import Final

UNIT: Final = r"(?:µs|ms|s|min|h|B|[KMGT]iB|[KMGT]iB/s|%)(?![\w/])"
"""Pattern of a unit behind a number and a space, which no line break parts."""


def seconds(value: float) -> str:
    """Returns a duration with a unit that suits its size, to three digits."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (600.0, 1.0, "s")):
        if abs(value) < limit:
            return f"{digits(value * factor)} {unit}"
    return f"{digits(value / 60)} min"


def wait(minutes: float) -> str:
    """Returns minutes for people, such as `40 s`, `12 min` or `2.5 h`."""
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def percent(ratio: float | None) -> str:
    """Returns a ratio in percent; a dash when there is none."""
    return "–" if ratio is None else f"{ratio * 100:.0f} %"


def num_bytes(value: float) -> str:
    """Returns a size in binary units, to three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{digits(value)} {unit}"
        value /= 1024
    return f"{digits(value)} TiB"


def count(number: int, what: str, several: str = "") -> str:
    """Returns a number of things: `1 point`, `2 points`, or `2 lives` where that is given."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"


@functools.lru_cache(maxsize=4096)  # tables of many repeats say the same again and again
def table_cell(text: str) -> str:
    """Returns text as the cell of a Markdown table, which a bar or a new line would end."""
    return " ".join(text.replace("|", "\\|").split())


def digits(value: float) -> str:
    """Returns a number to three digits, without an exponent."""
    # From 999.5 on, `.3g` would write an exponent.
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"
