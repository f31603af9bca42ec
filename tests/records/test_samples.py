"""All samples of a run as one table."""

import io
import json
import math

import pyarrow.parquet
import pytest

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import samples
from orbax_bench_core.records.record import ErrorInfo
from orbax_bench_core.records.samples import COLUMNS, SamplesFile


def written(records):
    file = io.BytesIO()
    with SamplesFile(file) as samples:
        for record in records:
            samples.add(record)
    return io.BytesIO(file.getvalue())


def read(records):
    return pyarrow.parquet.read_table(written(records))


def test_columns_and_types_are_those_that_other_tools_read(make_record):
    schema = read([make_record(times={"save": 1.0})]).schema
    found = {field.name: str(field.type) for field in schema}
    assert found == {name: kind.replace("float64", "double") for name, kind in COLUMNS.items()}


def test_the_columns_are_these_until_the_schema_version_changes():
    assert list(COLUMNS) == [
        *("schema_version", "run_id", "suite", "point_id", "point", "benchmark", "options"),
        *(
            "checkpoint",
            "mesh",
            "storage",
            "environment",
            "processes",
            "conditions",
            "arm",
            "block",
            "life",
            "repeat",
            "warmup",
        ),
        *("host", "worker", "attempt", "status", "verified"),
        *("operation", "occurrence", "metric", "value", "unit"),
        "flags",
    ]


def test_a_row_holds_the_facts_of_its_sample(make_record, make_point):
    point = make_point(
        options={"b": None, "a": True},
        mesh=MeshConfig(mesh_axes=["d"], ici_parallelism={"d": 8}),
        label="a=true",
    )
    sample = Sample("load", 2, "0_basics/time_s", 0.25, "s")
    (row,) = read([make_record(point, 3, samples=(sample,), host=1, worker="h:7:1.00")]).to_pylist()
    assert row == {
        "schema_version": 3,
        "run_id": "run",
        "suite": "a suite",
        "point_id": point.id,
        "point": "save_restore[a=true]",
        "benchmark": "save_restore",
        "options": '{"a": true, "b": null}',
        "checkpoint": "none",
        "mesh": "d8",
        "storage": "",
        "environment": "",
        "processes": 1,
        "conditions": '{"cache":"warm","host_memory":"reused","durable":false,"x64":true}',
        "arm": "",
        "block": None,
        "life": None,
        "repeat": 3,
        "warmup": False,
        "host": 1,
        "worker": "h:7:1.00",
        "attempt": 0,
        "status": "passed",
        "verified": "none",
        "operation": "load",
        "occurrence": 2,
        "metric": "0_basics/time_s",
        "value": 0.25,
        "unit": "s",
        "flags": "",
    }


def test_warm_ups_are_there_and_flagged(make_record):
    table = read([make_record(times={"save": 9.0}, warmup=True), make_record(times={"save": 1.0})])
    assert table.column("warmup").to_pylist() == [True, False]


def test_what_failed_repeats_measured_is_there_with_their_status(make_record):
    error = ErrorInfo(type="ValueError", message="no")
    table = read([make_record(times={"save": 1.0}, status="failed", error=error)])
    assert table.column("status").to_pylist() == ["failed"]


def test_samples_of_failed_attempts_are_there_before_those_of_the_retry(make_record):
    failed = make_record(
        times={"save": 3.0},
        status="failed",
        error=ErrorInfo(type="ValueError", message="no"),
        worker="h:7:1.00",
    )
    retry = make_record(times={"save": 1.0}, attempts=failed.as_attempt(), worker="h:8:2.00")
    columns = ["attempt", "status", "worker", "value"]
    assert read([retry]).select(columns).to_pylist() == [
        dict(zip(columns, row, strict=True))
        for row in [(0, "failed", "h:7:1.00", 3.0), (1, "passed", "h:8:2.00", 1.0)]
    ]


def test_a_failed_attempt_that_measured_nothing_has_a_row(make_record):
    error = ErrorInfo(type="ValueError", message="no")
    failed = make_record(times={}, status="failed", error=error, worker="h:7:1.00")
    retry = make_record(times={"save": 1.0}, attempts=failed.as_attempt())
    first, last = read([retry]).to_pylist()
    assert (first["attempt"], first["status"], first["operation"]) == (0, "failed", "")
    assert first["value"] is None
    assert (last["attempt"], last["status"], last["value"]) == (1, "passed", 1.0)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 5e-324, 2.0**53 + 2])
def test_values_are_exact(make_record, value):
    assert read([make_record(times={"save": value})]).column("value").to_pylist() == [value]


def test_nan_is_a_value_and_not_missing(make_record):
    column = read([make_record(times={"save": math.nan})]).column("value")
    assert column.null_count == 0
    assert math.isnan(column.to_pylist()[0])


def test_options_are_json(make_record, make_point):
    options = {"text": 'quoted "text", and a comma', "none": None}
    (row,) = read([make_record(make_point(options=options), times={"save": 1.0})]).to_pylist()
    assert json.loads(row["options"]) == options


def test_a_run_without_samples_has_all_columns_and_no_rows():
    table = read([])
    assert (table.num_rows, table.column_names) == (0, list(COLUMNS))


def test_many_records_are_written_group_by_group(make_record, monkeypatch):
    monkeypatch.setattr(samples, "_ROWS_PER_GROUP", 4)
    records = [make_record(repeat=repeat, times={"a": 1.0, "b": 2.0}) for repeat in range(5)]
    file = pyarrow.parquet.ParquetFile(written(records))
    assert file.metadata.num_row_groups > 1
    assert file.read().column("repeat").to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
