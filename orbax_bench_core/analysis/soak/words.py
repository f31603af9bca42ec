"""Numbers and sentences of a soak, the same in the terminal and on the pages."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.analysis.soak.model import Growth, Level, Slope, Soak, SoakSeries
from orbax_bench_core.analysis.soak.slope import DROPPED, FEWEST
from orbax_bench_core.document import digits, seconds

HEADINGS: Final = ("what", "first", "last", "per save", "second half", "limit", "verdict")
NUMBERS: Final = ("first", "last", "per save", "second half", "limit")
"""Columns of numbers."""
JUDGED: Final = ("what", "per save", "second half", "verdict")
"""The columns that a verdict follows from."""

READING: Final = f"""\
Per save: the median of the slopes between all pairs of saves (Theil-Sen), in brackets its 95 % \
interval by a moving-block bootstrap. The first {DROPPED} saves of the process do not count.
LEAK: the interval lies above the limit, for all saves and for the second half of them alone. \
PASS: it lies below the limit in both. INCONCLUSIVE: neither. A heap that still fills up grows at \
first, and has stopped growing in the second half.
Memory of the process is its resident set when a save has ended. That of the control group is its \
anonymous memory, of all processes in it; it is shown and not judged. Times and files left on \
storage are shown and not judged either.
Orbax 0.12.8 with TensorStore 0.1.86 keep 0.02 to 0.05 MiB per save and load themselves: lists \
that TensorStore makes of its metrics and specs are never freed. The default limit lies well above \
that."""
"""Reading aid of a soak, one line each."""

NAMES: Final[dict[Level, str]] = {
    "rss": "memory of the process",
    "device": "memory of the device",
    "anon": "memory of the control group",
    "open_files": "file descriptors",
    "threads": "threads",
    "time": "time of a save",
    "files_left": "files left by a save",
}

_LEAKS: Final[dict[Level, str]] = {
    "rss": "the process keeps",
    "device": "the device keeps",
    "open_files": "open file descriptors grow by",
    "threads": "threads grow by",
}
_DASH: Final = "–"


def growth_row(growth: Growth) -> tuple[str, ...]:
    """Returns one level as cells with the columns of `HEADINGS`."""
    unit = " MiB" if growth.unit == "MiB" else ""
    limit = _DASH if growth.limit is None else f"{digits(growth.limit)}{unit}"
    return (
        NAMES[growth.level],
        _level(growth, growth.first),
        _level(growth, growth.last),
        _slope(growth, growth.whole),
        _slope(growth, growth.half),
        limit,
        growth.word or _DASH,
    )


def headline(soak: Soak) -> str:
    """Returns the result of a soak, one sentence per process."""
    several = len(soak.series) > 1
    return " ".join(sentence(series, soak.limit_mib, several=several) for series in soak.series)


def sentence(series: SoakSeries, limit_mib: float, *, several: bool) -> str:
    """Returns the verdict on one process in a sentence or two."""
    about = f"{series.name}, host {series.host}: " if several else ""
    if not series.growths:
        return (
            f"{about}No verdict from {series.saves} saves of one process: it takes {FEWEST}. Run "
            f"the same command with --saves {FEWEST}."
        )
    grown = {growth.level: growth for growth in series.growths}
    memory = [grown[level] for level in ("rss", "device") if level in grown]
    if series.word == "LEAK":
        kept = [growth for growth in series.growths if growth.word == "LEAK"]
        said = "; ".join(f"{_LEAKS[growth.level]} {_kept(growth)}" for growth in kept)
        return f"{about}{said[0].upper()}{said[1:]}, over {series.saves} saves."
    said = " and ".join(f"{NAMES[growth.level]} grows by {_kept(growth)}" for growth in memory)
    if series.word == "PASS":
        below = f"below the limit of {digits(limit_mib)} MiB"
        return f"{about}The {said}: {below}, over {series.saves} saves."
    more = (
        f"about {series.needed} saves would tell"
        if series.needed is not None
        else "that is so near to the limit that more saves would not tell: choose another --limit"
    )
    return (
        f"{about}No verdict: the {said} over {series.saves} saves, and the limit is "
        f"{digits(limit_mib)} MiB; {more}."
    )


def _kept(growth: Growth) -> str:
    value, bracket, interval = _slope(growth, growth.whole).partition(" [")
    unit = " MiB" if growth.unit == "MiB" else ""
    return f"{value}{unit} per save{bracket}{interval}"


def _level(growth: Growth, value: float) -> str:
    if growth.unit == "s":
        return seconds(value)
    return f"{value:.0f}" if growth.unit == "count" else f"{value:.1f} MiB"


def _slope(growth: Growth, slope: Slope) -> str:
    # Seconds per save are shown in microseconds: a drift is a small part of a save.
    factor, unit = (1e6, " µs") if growth.unit == "s" else (1.0, "")
    value, low, high = (
        _signed(factor * growth) for growth in (slope.per_save, slope.low, slope.high)
    )
    return f"{value}{unit} [{low}, {high}]"


def _signed(value: float) -> str:
    if abs(value) < 0.0005:
        return "0"
    return f"{value:.3f}" if abs(value) < 1 else digits(value)
