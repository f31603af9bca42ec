"""Aggregates of a metric, to the last bit, however its repeats are laid out."""

import io
import random
import statistics

import pytest

from orbax_bench_core.analysis.summary import SummaryTable, summarize
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import repeats_of


@pytest.fixture
def table(make_record):
    """Returns the lines of the summary of repeats with values of their own, and these values."""

    def make(*scales, uneven=False):
        draw = random.Random(len(scales))
        values = [draw.lognormvariate(0, 1) * scale for scale in scales]
        more = (Sample("save", 0, "x/y", 1.0, ""),) if uneven else ()
        records = [
            make_record(repeat=n, samples=(Sample("save", 0, "a/b", value, "s"), *more[:n]))
            for n, value in enumerate(values)
        ]
        file = io.BytesIO()
        summary = SummaryTable(file)
        summarize(repeats_of(records), summary)
        summary.end()
        return file.getvalue().decode().splitlines(), values

    return make


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("scales", [(1,), (1, 1), (1,) * 7, (1e-9, 1, 1e20), (0, 1, -1), (-0.0, 1)])
def test_numbers_are_those_of_the_standard_library(table, scales, uneven):
    lines, values = table(*scales, uneven=uneven)
    found = [float(text) for text in lines[1].split(",")[-7:]]
    cuts = (
        statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else values * 99
    )
    low, high = cuts[24], cuts[74]
    assert found[:2] == [statistics.fmean(values), statistics.median(values)]
    assert found[2:5] == pytest.approx([low, high, cuts[98]], rel=1e-12)
    assert found[5:] == [min(values), max(values)]
    assert lines[1].split(",")[-7:] == [repr(number) for number in found]


def test_repeats_without_a_sample_have_no_line(make_record):
    file = io.BytesIO()
    summary = SummaryTable(file)
    summarize(repeats_of([make_record(samples=())]), summary)
    summary.end()
    assert file.getvalue().count(b"\n") == 1
