"""All samples of a run as one table; tests/golden has its columns and rows, word for word."""

import gc
import io
import math

import pyarrow.parquet
import pytest

from orbax_bench_core.records import samples
from orbax_bench_core.records.samples import COLUMNS, SamplesFile


def written(records):
    file = io.BytesIO()
    with SamplesFile(file) as samples:
        for record in records:
            samples.add(record)
    return io.BytesIO(file.getvalue())


def read(records):
    return pyarrow.parquet.read_table(written(records))


@pytest.mark.parametrize("value", [math.inf, -math.inf, 5e-324, 2.0**53 + 2])
def test_values_are_exact(make_record, value):
    assert read([make_record(times={"save": value})]).column("value").to_pylist() == [value]


def test_nan_is_a_value_and_not_missing(make_record):
    column = read([make_record(times={"save": math.nan})]).column("value")
    assert column.null_count == 0
    assert math.isnan(column.to_pylist()[0])


def test_a_run_without_samples_has_all_columns_and_no_rows():
    table = read([])
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))


def test_a_table_that_is_interrupted_is_not_ended_when_it_is_collected(make_record, monkeypatch):
    def interrupt(records):
        raise KeyboardInterrupt

    def fill():
        with io.BytesIO() as file, SamplesFile(file) as samples:
            samples.add(make_record())

    monkeypatch.setattr(samples, "samples_table", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fill()
    gc.collect()  # what is raised then fails this test


def test_many_records_are_written_group_by_group(make_record, monkeypatch):
    monkeypatch.setattr(samples, "_ROWS_PER_GROUP", 4)
    records = [make_record(repeat=repeat, times={"a": 1.0, "b": 2.0}) for repeat in range(5)]
    file = pyarrow.parquet.ParquetFile(written(records))
    assert file.metadata.num_row_groups > 1
    assert file.read().column("repeat").to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
