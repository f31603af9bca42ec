"""Parsing of records: what the model of a record says, in one pass."""

import functools
import json
import sys

import pytest

from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import Attempt, ErrorInfo, Record, RunDirectory, State, record_files
from orbax_bench_core.records.parsing import parsed_record
from orbax_bench_core.records.record import StoreTrouble, whole_record

ERROR = ErrorInfo(type="E", message="no")
NAN = float("nan")
CASES = {
    "usual": {"times": {"save": 1.5, "load": 2}},
    "nothing measured": {"samples": ()},
    "not a number": {
        "samples": (Sample("save", 0, "a/b", NAN, "s"), Sample("x", 1, "c/d", 2.0, ""))
    },
    "names like values": {"samples": (Sample('"value": 1, "', 0, 'a/"value": 2,', 3.0, ","),)},
    "failed": {"status": "failed", "error": ErrorInfo(type="E", message='"value": 7,')},
}


@pytest.mark.parametrize("name", CASES)
def test_a_record_is_read_as_its_model_reads_it(make_record, name):
    text = make_record(**CASES[name]).model_dump_json(indent=1)
    found, meant = parsed_record(text.encode()), Record.model_validate_json(text)
    assert found.model_dump_json(indent=1) == meant.model_dump_json(indent=1) == text
    assert repr(found.samples) == repr(meant.samples)
    assert found.model_fields_set == meant.model_fields_set


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_the_layout_of_the_text_does_not_matter(make_record, indent):
    record = make_record(times={"save": 1.5})
    text = json.dumps(json.loads(record.model_dump_json()), indent=indent)
    assert parsed_record(text.encode()) == record


def test_what_was_read_can_be_changed_and_compared(make_record):
    record = make_record(times={"save": 1.5, "load": 2.0})
    found = parsed_record(record.model_dump_json(indent=1).encode())
    more = found.model_copy(update={"samples": (*found.samples, Sample("x", 0, "y", 1.0, ""))})
    assert found == record
    assert len(found.samples) == 2
    assert more.samples[:2] == record.samples
    assert found.samples[0] == record.samples[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"value": 1.5', '"value": 1_5'),
        ('"value": 1.5', '"value": "many"'),
        ('"value": 1.5', '"value": 1.5]'),
        ('"value": 1.5', '"value": [1.5]'),
        ('"value": 1.5', '"value": true1'),
        ('"occurrence": 0', '"occurrence": "first"'),
        ('"status": "passed"', '"status": "fine"'),
        ('"repeat": 0', '"repeat": null'),
        ('"suite"', '"sweet"'),
        ('"schema_version": 3', '"schema_version": 4'),
    ],
)
def test_what_the_model_refuses_is_no_record(make_record, before, after):
    text = make_record(times={"save": 1.5}).model_dump_json(indent=1)
    assert parsed_record(text.encode()) is not None  # what is around the value is known by now
    assert before in text
    assert parsed_record(text.replace(before, after, 1).encode()) is None


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[" * 100_000, b"\xff", b'{"a": "\\ud800"}'])
def test_what_is_torn_is_no_record(data):
    assert parsed_record(data) is None


def test_an_environment_without_the_parser_reads_records_by_their_model(
    make_run, make_record, make_point, monkeypatch
):
    made = make_run([make_record(make_point(), times={"save": 1.5})])
    monkeypatch.setitem(sys.modules, "msgspec", None)
    monkeypatch.delitem(sys.modules, "orbax_bench_core.records.parsing")
    record_files._parser.cache_clear()
    (record,) = RunDirectory(str(made.root)).records()
    record_files._parser.cache_clear()
    assert {sample.value for sample in record.samples if sample.operation == "save"} >= {1.5}


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
            assert whole_record(data) is None, (path, wrong)


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
    assert whole_record(data) is None
