"""Async study for people: how long training is blocked by saves of both kinds, by size."""

from collections.abc import Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.async_study import model
from orbax_bench_core.analysis.async_study.lines import NEAR
from orbax_bench_core.analysis.async_study.reasons import SENTENCES
from orbax_bench_core.errors import command
from orbax_bench_core.reasons import in_words

READING: Final = """\
Blocked is the time until training goes on (`save_blocking`), total the time until the checkpoint \
is committed (`save`). Saved is 1 - blocked async / blocked sync.
Times are medians of n repeats, in parentheses an interval that holds the median in at least 95 % \
of cases. Fewer than 6 repeats of a kind do not have one: there it is the fastest and the \
slowest, which hold it in 94 % of cases with 5 repeats, 88 % with 4 and 75 % with 3.
Shares and ratios are medians over all pairs of an async and a sync repeat, with the 95 % \
interval of the rank test; 3 repeats of each kind have none.
The documented figures are those of the Orbax documentation for models of 300M, 8B and 340B \
parameters. It does not say on what they were measured, so they show the shape and are no target."""
"""Reading aid, one line each."""
_PER_SECOND: Final = {"µs": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60}
_MOST_DRAWN: Final = 20
"""Series with a drawing: a page of hundreds could not be opened."""


def headline(study: model.AsyncStudy) -> pages.Callout:
    """Returns the gain of saving in the background, in a sentence, for the longest series."""
    series = max(study.series, key=lambda each: len(each.sizes))
    size = series.sizes[-1]
    several = f", in the longest of {len(study.series)} series" if len(study.series) > 1 else ""
    said = (
        "Saving in the background blocks training for "
        f"{pages.seconds(size.background.blocked.median)} instead of "
        f"{pages.seconds(size.blocking.blocked.median)} ({percent(size.saved.value)} less) at "
        f"{_size(size)}{several}"
    )
    return pages.Callout("", said)


def study_document(study: model.AsyncStudy) -> pages.Document:
    """Returns a study for people, and the command that its times are for."""
    found = study.series
    notes = tuple(in_words(SENTENCES, note) for note in study.notes)
    drawn = [_shares(series, study.documented) for series in found[:_MOST_DRAWN]]
    told = (f"{percent(one.saved)} at {count(one.num_parameters)}" for one in study.documented)
    lines = (pages.Text(pages.code(each.name), items=tuple(fit_lines(each))) for each in found)
    return pages.Document(
        about=f"Async study of {study.suite}",
        headline=headline(study),
        summary=(
            *drawn[:1],
            _blocked(found),
            pages.Text(items=notes, role="unsure"),
            pages.Text(f"Orbax's documentation says: {', '.join(told)} parameters.", "dim"),
        ),
        following=_following(found[0].sizes[-1]),
        details=(
            pages.Details("Times with intervals, repeats and bytes", (_whole(found),)),
            pages.Details("Shares of the other series", tuple(drawn[1:])),
            pages.Details("Lines through the sizes", tuple(line for line in lines if line.items)),
            pages.Details("How to read this", (pages.Text(items=tuple(READING.splitlines())),)),
            pages.Text(f"Run {study.run_id}. Every number is in `async_study.json`.", "dim"),
        ),
    )


def _following(size: model.Size) -> pages.Code:
    blocks, total = size.background.blocked.median, size.background.total.median
    times = {"sync": size.blocking.total.median, "blocking": blocks, "background": total - blocks}
    saves = (
        word
        for name, seconds in times.items()  # at least 0.1 ms: a duration has no exponent
        for word in (f"--save-{name}", f"{pages.digits(max(seconds, 1e-4))}s")
    )
    job = ("--slowdown", "0.1", "--mtbf", "4h", "--recovery", "5min")
    return pages.Code(
        command("goodput", *saves, *job),
        "How often to save with these times; put in how often your job fails, and the rest.",
    )


def _blocked(found: Sequence[model.SizeSeries]) -> pages.Table:
    rows = (
        pages.Row(
            (
                _size(size).removesuffix(" parameters"),
                pages.seconds(size.blocking.blocked.median),
                pages.seconds(size.background.blocked.median),
                share(size.saved),
            ),
            pages.code(series.name),
        )
        for series in found
        for size in series.sizes
    )
    columns = pages.columns("parameters#", "blocked, sync#", "blocked, async#", "saved#")
    return pages.Table(columns, tuple(rows))


def _whole(found: Sequence[model.SizeSeries]) -> pages.Table:
    blocked, total = ("blocked, sync#", "blocked, async#"), ("total, sync#", "total, async#")
    ends = ("total async/sync#", "interval holds#")
    columns = pages.columns("checkpoint`", "bytes#", "n#", *blocked, *total, *ends)
    rows = []
    for series in found:
        for size in series.sizes:
            both = (size.blocking, size.background)
            times = [kind.blocked for kind in both] + [kind.total for kind in both]
            cells = (
                size.checkpoint,
                pages.num_bytes(size.num_bytes),
                " and ".join(dict.fromkeys(map(_repeats, both))),
                *map(_seconds, times),
                _ratio(size.overhead),
                " and ".join(dict.fromkeys(percent(time.coverage) for time in times)),
            )
            rows.append(pages.Row(cells, pages.code(series.name)))
    return pages.Table(columns, tuple(rows))


def _repeats(kind: model.SaveKind) -> str:
    failed = f", {kind.failed} failed" if kind.failed else ""
    times = dict.fromkeys(str(time.n) for time in (kind.blocked, kind.total))
    return f"{'/'.join(times)}{failed}"


def fit_lines(series: model.SizeSeries) -> list[str]:
    """Returns the lines through the sizes and their limits, one sentence each."""
    fit = series.fit
    if fit is None:
        return []
    said = [f"Blocked, sync: {_line(fit.blocking)}.", f"Blocked, async: {_line(fit.background)}."]
    if fit.blocking.flat or fit.limit is None:
        said.append("Blocking saves do not grow with the bytes, so the lines explain nothing.")
        return said
    if fit.background.flat:
        said.append(
            "Async saves block as long at every size, as far as the noise lets see. So the share "
            "saved grows because blocking saves do; where it ends is not measured."
        )
    else:
        said.append(
            f"By these lines the share saved goes to {percent(fit.limit)} for large checkpoints."
        )
    if max(fit.blocking.worst, fit.background.worst) > NEAR:
        said.append(
            f"A line misses a median by more than {percent(NEAR)}: its speed is not to be trusted."
        )
    said.append(
        f"They are straight lines through {len(series.sizes)} medians of this place: a "
        "description, not a forecast for other machines, other storage or many hosts."
    )
    return said


def count(value: float) -> str:
    """Returns a number of parameters as people write it, such as 1.02B."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        # From 999.5 on, three digits are those of the next unit.
        if value >= 0.9995 * limit:
            return f"{pages.digits(value / limit)}{unit}"
    return f"{value:.0f}"


def percent(ratio: float) -> str:
    """Returns a share in percent, finer where it is near to all."""
    if not 0.9 < ratio < 1:
        return pages.percent(ratio)
    return pages.share(ratio, 3 if ratio < 0.995 else 4)


def share(saved: model.Ratio) -> str:
    """Returns a share with its interval, in percent."""
    if saved.low is None or saved.high is None:
        return percent(saved.value)
    return f"{percent(saved.value)} ({percent(saved.low)[:-2]} to {percent(saved.high)})"


def _size(size: model.Size) -> str:
    if size.num_parameters is None:
        return pages.num_bytes(size.num_bytes)
    return f"{count(size.num_parameters)} parameters"


def _line(line: model.Line) -> str:
    rate = line.bytes_per_s
    growing = (
        f"its bytes at {pages.num_bytes(rate)}/s" if rate and not line.flat else "no shown growth"
    )
    return (
        f"{pages.seconds(line.fixed_s)} and {growing}; the medians lie {percent(line.residual)} "
        f"away (root mean square), {percent(line.worst)} at most"
    )


def _seconds(time: model.Seconds) -> str:
    """Returns a median with its interval, in the unit of the median."""
    median = pages.seconds(time.median)
    if time.n == 1:
        return median
    factor = _PER_SECOND[median.rpartition(" ")[2]]
    low, high = (pages.digits(factor * end) for end in (time.low, time.high))
    return f"{median} ({low} to {high})"


def _ratio(ratio: model.Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}x"
    return f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"


def _shares(series: model.SizeSeries, documented: Sequence[model.Documented]) -> pages.Chart:
    """Returns the share of the blocked time that is saved, size by size.

    Documented figures go by parameters, and are left out where the sizes are in bytes.
    """
    by_parameters, write = series.by_parameters, count if series.by_parameters else pages.num_bytes
    at, ends = [], list[tuple[float, float]]()
    for size in series.sizes:
        x, saved = float((by_parameters and size.num_parameters) or size.num_bytes), size.saved
        at.append((x, saved.value))
        if saved.low is not None and saved.high is not None:
            ends += [(x, saved.low), (x, saved.high)]
    told = [(float(each.num_parameters), each.saved) for each in documented if by_parameters]
    marks = (
        pages.Mark("whisker", tuple(ends), "c1"),
        pages.Mark("dots", tuple(at), "c1", "measured here, 95 % interval"),
        *(
            [
                pages.Mark(
                    "dots", tuple(told), "unsure", "documented, on machines not named", hollow=True
                )
            ]
            if told
            else []
        ),
    )
    places, lowest = [x for x, _ in at + told], min(0.0, *(y for _, y in at + ends))
    said = ", ".join(f"{share(size.saved)} at {_size(size)}" for size in series.sizes)
    return pages.Chart(
        f"Share of the blocked time saved, by size: {pages.code(series.name)}",
        said,
        pages.axis(
            "parameters" if by_parameters else "bytes",
            min(places) / 3,
            3 * max(places),
            write,
            log=True,
        ),
        pages.axis("", max(-1.0, lowest - 0.05), 1.04, percent),
        marks,
    )
