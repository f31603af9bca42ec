"""Soak for people: what a process keeps of each save, and whether that is below the limit."""

from collections.abc import Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.soak.growth import DROPPED, FEWEST
from orbax_bench_core.analysis.soak.model import Growth, Level, Slope, Soak, SoakSeries
from orbax_bench_core.analysis.soak.reasons import SENTENCES
from orbax_bench_core.errors import command
from orbax_bench_core.exit_codes import WORDS
from orbax_bench_core.reasons import in_words

READING: Final = f"""\
Per save: the median of the slopes between all pairs of saves (Theil-Sen), in parentheses its 95 \
% interval by a moving-block bootstrap. The first {DROPPED} saves of the process do not count. \
First and last are medians of ten saves.
LEAK: the interval lies above the limit, for all saves and for the second half of them alone. \
PASS: it lies below the limit in both. INCONCLUSIVE: neither. A heap that still fills up grows at \
first, and has stopped growing in the second half.
Memory of the process is its resident set when a save has ended. That of the control group is the \
anonymous memory of all processes in it. It is shown and not judged, as are times and files left \
on storage.
Orbax 0.12.8 with TensorStore 0.1.86 keep 0.02 to 0.05 MiB per save and load themselves: lists \
that TensorStore makes of its metrics and specs are never freed. The default limit lies well \
above that."""
"""Reading aid, one line each."""
NAMES: Final[dict[Level, str]] = {
    "rss": "process memory",
    "device": "device memory",
    "anon": "control group's memory",
    "open_files": "file descriptors",
    "threads": "threads",
    "time": "time of a save",
    "files_left": "files left by a save",
}
_KEEPS: Final[dict[Level, str]] = {
    "rss": "the process keeps",
    "device": "the device keeps",
    "open_files": "open file descriptors grow by",
    "threads": "threads grow by",
}
_MEMORY: Final = ("rss", "device")
_MOST_DRAWN: Final = 20
"""Processes with a drawing: a page of hundreds could not be opened."""


def headline(soak: Soak) -> pages.Callout:
    """Returns the verdict on a soak in a sentence: of several processes that on the worst."""
    worst = min(soak.series, key=_rank)
    said = _sentence(worst, soak.limit_mib)
    alike = sum(series.word == worst.word for series in soak.series)
    if len(soak.series) > 1:
        said += f"; {alike} of {len(soak.series)} processes: {worst.word}"
    failed = sum(series.failed for series in soak.series)
    if failed and soak.word == "INCONCLUSIVE":
        repeats = pages.count(failed, "repeat")
        said = f"{repeats} failed, so this is not a pass; until then {said}"
    return pages.Callout(soak.word, said, WORDS[soak.word].role)


def _rank(series: SoakSeries) -> tuple[int, float]:
    memory = series.growth("rss")
    return list(WORDS).index(series.word), -(memory.whole.per_save if memory else 0.0)


def _sentence(series: SoakSeries, limit_mib: float) -> str:
    if not series.growths:
        return f"{series.saves} saves of one process are too few: it takes {FEWEST}"
    limit = f"the limit of {pages.digits(limit_mib)} MiB"
    growths = [growth for growth in series.growths if growth.level in _MEMORY]
    if series.word == "LEAK":
        growths = [growth for growth in series.growths if growth.word == "LEAK"]
    kept = " and ".join(
        f"{_KEEPS[growth.level]} {_slope(growth, growth.whole)} per save" for growth in growths
    )
    if series.word == "LEAK":
        return f"{kept}, over {series.saves} saves"
    if series.word == "PASS":
        return f"{kept}: below {limit}, over {series.saves} saves"
    more = (
        "so near that more saves would not tell"
        if series.needed is None
        else f"about {series.needed} would tell"
    )
    return f"{kept} over {series.saves} saves, and {limit} is in reach; {more}"


def soak_document(soak: Soak, place: str) -> pages.Document:
    """Returns a soak for people; `place` is its run directory."""
    found = sorted(soak.series, key=_rank)
    notes = tuple(in_words(SENTENCES, note) for note in soak.notes)
    drawn = [_memory(series, soak.limit_mib) for series in found if series.levels][:_MOST_DRAWN]
    return pages.Document(
        about=f"Soak of {soak.suite}, {pages.count(len(found), 'process', 'processes')}, "
        f"limit {pages.digits(soak.limit_mib)} MiB per save",
        headline=headline(soak),
        summary=(*drawn[:1], _judged(found), pages.Text(items=notes, role="unsure")),
        following=_following(soak, place),
        details=(
            pages.Details("All levels", (_levels(found),)),
            pages.Details("Memory of the other processes", tuple(drawn[1:])),
            pages.Details("Saves that were made", (pages.Text(items=tuple(map(_made, found))),)),
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
            pages.Text(f"Run {soak.run_id}. Every number is in `soak.json`.", "dim"),
        ),
    )


def _following(soak: Soak, place: str) -> pages.Code | None:
    worst = min(soak.series, key=_rank)
    memory = [growth for growth in worst.growths if growth.level in _MEMORY]
    if soak.word == "PASS":
        return None
    if any(series.failed for series in soak.series):
        return pages.Code(command("report", place), "The report has the traceback of what failed.")
    if soak.word == "INCONCLUSIVE" and worst.needed is not None:
        if not soak.suite_file:  # of an earlier release
            return None
        saves = ("--saves", worst.needed)
        again = command("soak", soak.suite_file, *soak.flags, *saves, "-o", place)
        return pages.Code(again, "Make more saves of one process.")
    if soak.word == "LEAK" and all(growth.word != "LEAK" for growth in memory):
        # The limit that can be given is of memory: no other one accepts what grows here.
        shown = "All levels, and how much each grows in the second half of the saves:"
        return pages.Code(command("soak", place, "--details"), shown)
    most = max((max(growth.whole.high, growth.half.high) for growth in memory), default=0.0)
    higher = command("soak", place, "--limit", pages.digits(1.2 * most, 2))
    if soak.word == "INCONCLUSIVE":
        return pages.Code(higher, "Judge the same saves by a limit that is further away.")
    return pages.Code(
        higher,
        f"A thousand saves take {pages.digits(1000 * most)} MiB. To find what keeps them, soak "
        "another option or release; to accept them, judge the same saves by a higher limit.",
    )


def _judged(found: Sequence[SoakSeries]) -> pages.Table:
    """Returns the levels with a limit: of several processes memory, and what is no PASS."""
    columns = pages.columns("what", "first#", "last#", "per save#", "verdict")
    rows = []
    for series in found:
        for growth in series.growths:
            told = len(found) == 1 or growth.level in _MEMORY or growth.word != "PASS"
            if growth.word is not None and told:
                word = pages.Cell(growth.word, WORDS[growth.word].role)
                rows.append(pages.Row((*_measured(growth), word), _name(series)))
    return pages.Table(columns, tuple(rows))


def _levels(found: Sequence[SoakSeries]) -> pages.Table:
    halves = ("per save#", "in the second half#")
    columns = pages.columns("what", "first#", "last#", *halves, "limit#", "verdict~")
    rows = []
    for series in found:
        for growth in series.growths:
            more = "" if growth.more is None else f", about {growth.more} saves would tell"
            word = (
                pages.Cell(f"{growth.word}{more}", WORDS[growth.word].role) if growth.word else "–"
            )
            cells = (*_measured(growth), _slope(growth, growth.half), _limit(growth), word)
            rows.append(pages.Row(cells, _name(series), dim=growth.limit is None))
    return pages.Table(columns, tuple(rows))


def _measured(growth: Growth) -> tuple[str, str, str, str]:
    first, last = (_level(growth, value) for value in (growth.first, growth.last))
    return NAMES[growth.level], first, last, _slope(growth, growth.whole)


def _name(series: SoakSeries) -> str:
    return f"{pages.code(series.name)}, host {series.host}"


def _made(series: SoakSeries) -> str:
    failed = f"; {pages.count(series.failed, 'repeat')} failed" if series.failed else ""
    lives = pages.count(len(series.lives), "process", "processes")
    return (
        f"{_name(series)}: {series.saves} times `{series.operation}` in the longest of {lives} "
        f"({', '.join(map(str, series.lives))}), of which the first {series.dropped} do not count"
        f"{failed}."
    )


def _limit(growth: Growth) -> str:
    unit = " MiB" if growth.unit == "MiB" else ""
    return "–" if growth.limit is None else f"{pages.digits(growth.limit)}{unit}"


def _level(growth: Growth, value: float) -> str:
    if growth.unit == "s":
        return pages.seconds(value)
    return f"{value:.0f}" if growth.unit == "count" else f"{value:.1f} MiB"


def _slope(growth: Growth, slope: Slope) -> str:
    # Seconds per save are shown in microseconds: a drift is a small part of a save.
    factor, unit = {"s": (1e6, " µs"), "MiB": (1.0, " MiB")}.get(growth.unit, (1.0, ""))
    value, low, high = (_signed(factor * each) for each in (slope.per_save, slope.low, slope.high))
    return f"{value}{unit} ({low} to {high})"


def _signed(value: float) -> str:
    if abs(value) < 0.0005:
        return "0"
    return f"{value:.3f}" if abs(value) < 1 else pages.digits(value)


def _memory(series: SoakSeries, limit_mib: float) -> pages.Chart:
    """Returns the resident set after each save, its growth, and the growth of the limit."""
    stride = max(1, -(-series.saves // len(series.levels)))
    firsts = range(1, series.saves + 1, stride)
    places = [(first + min(first + stride - 1, series.saves)) / 2 for first in firsts]
    marks = [
        pages.Mark("dots", tuple(zip(places, series.levels, strict=False)), "c1", "after a save")
    ]
    values, growth = list(series.levels), series.growth("rss")
    said = f"{_name(series)}: from {values[0]:.1f} MiB to {values[-1]:.1f} MiB"
    if growth is not None:
        middle = (series.dropped + series.saves) / 2
        level = (growth.first + growth.last) / 2
        lines: tuple[tuple[float, pages.Role, str], ...] = (
            (growth.whole.per_save, WORDS[series.word].role, "growth"),
            (limit_mib, "dim", "growth at the limit"),
        )
        for slope, tone, name in lines:
            line = tuple((x, level + slope * (x - middle)) for x in (series.dropped, series.saves))
            marks.append(pages.Mark("line", line, tone, name, dashed=tone == "dim"))
            values += [y for _, y in line]
        said += f", {_slope(growth, growth.whole)} per save"
    low, high = min(values), max(values)
    room = max(0.06 * (high - low), 0.5)
    y = pages.axis("", low - room, high + room, lambda value: f"{pages.digits(value)} MiB")
    dropped = ((0.0, low - room), (float(series.dropped), high + room))
    marks.insert(0, pages.Mark("band", dropped, "dim", "does not count"))
    x = pages.axis("save", 0, series.saves + 1, "{:.0f}".format)
    title = f"Resident set after each save: {_name(series)}"
    return pages.Chart(title, said, x, y, tuple(marks))
