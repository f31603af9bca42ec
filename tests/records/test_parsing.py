"""Parsing of records: what is torn or out of bounds is no record."""

import functools
import json

import pytest

from orbax_bench_core.inventory import Inventory
from orbax_bench_core.records import Attempt, ErrorInfo, State
from orbax_bench_core.records.record import StoreTrouble, parsed_record

ERROR = ErrorInfo(type="E", message="no")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"value": 1.5', '"value": "many"'),
        ('"occurrence": 0', '"occurrence": "first"'),
        ('"status": "passed"', '"status": "fine"'),
        ('"repeat": 0', '"repeat": null'),
        ('"suite"', '"sweet"'),
        ('"schema_version": 3', '"schema_version": 4'),
    ],
)
def test_what_the_model_refuses_is_no_record(make_record, before, after):
    text = make_record(times={"save": 1.5}).model_dump_json(indent=1)
    assert before in text
    assert parsed_record(text.replace(before, after, 1).encode()) is None


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[" * 100_000, b"\xff", b'{"a": "\\ud800"}'])
def test_what_is_torn_is_no_record(data):
    assert parsed_record(data) is None


@pytest.mark.parametrize("name", ["git", "versions"])
def test_a_record_whose_provenance_has_another_form_is_none(make_record, name):
    content = json.loads(make_record().model_dump_json())
    content["provenance"][name] = ["jax"]
    assert parsed_record(json.dumps(content).encode()) is None


def numbers(content, path=()):
    """Paths of the numbers in a record that are neither the suite's nor of a metric of any kind."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            if key not in ("point", "provenance", "schema_version", "value", "asked"):
                yield from numbers(value, (*path, key))
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield path


def test_every_number_of_a_record_is_bounded_and_finite(make_record):
    record = make_record(
        times={"save": 1.5},
        block=1,
        life=2,
        state=State(num_bytes=8, digest={}),
        inventory=Inventory(total_bytes=1, file_count=1, largest_bytes=1),
        attempts=(Attempt(error=ERROR, started_at="2026-01-01T00:00:00Z", duration_s=1.0),),
        store_troubles=(StoreTrouble(operation="a", occurrence=0, kind="retries", count=1),),
    )
    content = json.loads(record.model_dump_json())
    paths = list(numbers(content))
    assert len(paths) > 15
    for path in paths:
        for wrong in (10**30, -1, "NaN", "Infinity", 1e300):
            broken = json.loads(record.model_dump_json())
            functools.reduce(lambda part, key: part[key], path[:-1], broken)[path[-1]] = wrong
            data = json.dumps(broken).encode()
            assert parsed_record(data) is None, (path, wrong)


def test_a_time_that_no_computation_can_go_on_from_is_none(make_record):
    text = make_record(started_at="2026-01-01T00:00:00Z").model_dump_json()
    for year in ("0001", "9999"):
        assert parsed_record(text.replace("2026-01-01T", f"{year}-01-01T").encode()) is None


@pytest.mark.parametrize("seconds", ["-1.5", "NaN", "Infinity", '"NaN"', "1e999"])
def test_a_record_of_a_time_that_nothing_takes_is_torn(make_record, seconds):
    text = make_record(times={"save": 1.5}).model_dump_json(indent=1)
    data = text.replace('"value": 1.5', f'"value": {seconds}').encode()
    assert data != text.encode()
    assert parsed_record(data) is None
