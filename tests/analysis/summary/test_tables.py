"""Tables of operations, rows of repeats, and names of series."""

import pytest

from orbax_bench_core.analysis.summary import tables
from orbax_bench_core.analysis.summary.aggregate import RESIDENT, summarize
from orbax_bench_core.analysis.summary.charts import short_names, varying
from orbax_bench_core.analysis.summary.view import summary_elements
from orbax_bench_core.measure import TIME, Sample, tail_of_steps
from orbax_bench_core.records import Series, repeats_of


@pytest.fixture
def save(make_record):
    return summarize(repeats_of([make_record(times={"save": 2.0})]))


@pytest.fixture
def extra(save):
    [operation] = save.operations
    key = (operation.time.point_id, "save")
    return tables.ExtraColumns(
        headings=("limit", "of limit"),
        cells={key: ("write + fsync", "50 %")},
        notes={key: "It dominates."},
        legend="Limit: the least.",
    )


def test_a_note_on_an_operation_is_a_remark(save, extra):
    [table] = tables.point_tables(save, extra)
    assert [remark.text for remark in table.remarks] == ["save: It dominates."]


@pytest.mark.parametrize(
    ("shares", "word"),
    [([1.0, 0.97], "warm"), ([0.0], "cold"), ([1.0, 0.0], "mixed"), ([], "unknown")],
)
def test_a_load_says_what_its_cache_was_and_how_to_measure_the_other(make_record, shares, word):
    time = [Sample(name, 0, TIME, 1.0, "s") for name in ("save", "load")]
    records = [
        make_record(samples=(*time, Sample("load", 0, RESIDENT, share, "ratio")), repeat=repeat)
        for repeat, share in enumerate(shares)
    ] or [make_record(samples=tuple(time))]
    summary = summarize(repeats_of(records))
    rows = [tables.operation_cells(operation)[0] for operation in summary.operations]
    assert rows == ["save", f"load ({word})"]
    other = {"warm": "cold", "cold": "warm"}.get(word)
    said = [getattr(each, "text", "") for each in summary_elements(summary)]
    hints = [str(text) for text in said if "execution.cache=" in str(text)]
    assert [f"execution.cache={other}`" in hint for hint in hints] == ([True] if other else [])


def test_a_fast_operation_has_no_exponent(make_record):
    record = make_record(times={"save": 1.0}, sizes={"save": 1300 * 2**30})
    (operation,) = summarize(repeats_of([record])).operations
    assert tables.operation_cells(operation)[-1] == "1300"


def test_the_slowest_steps_of_a_training_stand_below_its_time(make_record):
    found = tail_of_steps([0.01] * 9 + [0.11])
    samples = [Sample("train", 0, TIME, 0.2, "s")]
    samples += [Sample("train", 0, one.metric, one.value, one.unit) for one in found]
    summary = summarize(repeats_of([make_record(samples=tuple(samples))]))
    (table,) = tables.point_tables(summary, tables.NO_EXTRA)
    (said,) = [remark.text for remark in table.remarks]
    assert said == (
        "train: of 10 steps, the median took 10 ms, the 99th percentile 101 ms, the longest "
        "110 ms; 50 % of their time went beyond the median"
    )


def series(*entries):
    return [one for entry in entries for one in Series.all_of(entry)]


def test_a_name_has_what_tells_it_from_others(make_point):
    points = [make_point(options={"a": a}, label=f"a={a},chunks=[1,2],ckpt=w") for a in (1, 2)]
    assert list(short_names(series(*points)).values()) == ["a=1", "a=2"]


def test_a_single_series_keeps_its_label(make_point):
    assert list(short_names(series(make_point())).values()) == ["use_ocdbt=true"]
    assert list(short_names(series(make_point(label=""))).values()) == ["save_restore"]


def test_several_benchmarks_are_named(make_point):
    other = make_point(benchmark="my.load.Load", label="x=1")
    assert list(short_names(series(make_point(label="x=1"), other)).values()) == [
        "save_restore",
        "Load",
    ]


def test_arms_differ_by_their_arm(make_point):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    assert list(short_names(series(pair)).values()) == ["arm=baseline", "arm=candidate"]
    assert set(varying(series(pair))) == {"arm", "use_ocdbt"}


def test_what_varies_has_a_value_for_each(make_point):
    points = [make_point(options={"a": True, "b": 1}), make_point(options={"a": "x", "c": 2})]
    found = {name: list(values.values()) for name, values in varying(series(*points)).items()}
    assert found == {"a": ["true", "x"], "b": ["1", "–"], "c": ["–", "2"]}
