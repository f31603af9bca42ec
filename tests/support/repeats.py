"""Repeats and series, built from records and points."""

from orbax_bench_core.records import Repeat, Series


def repeat_over(records, num_hosts):
    """The repeat that these records, by host, form of so many hosts."""
    if not records:
        nothing = Series(id="", name="", entry=None)
        return Repeat(series=nothing, index=0, records={}, num_hosts=num_hosts)
    first = next(iter(records.values()))
    return Repeat(
        series=Series.of_record(first),
        index=first.repeat,
        block=first.block,
        warmup=first.warmup,
        records=records,
        num_hosts=num_hosts,
    )


def series_of(point):
    """The one series of a point."""
    (series,) = Series.all_of(point)
    return series
