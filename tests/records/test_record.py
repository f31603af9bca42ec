"""The JSON of one repeat; what is torn or out of bounds is no record."""

import functools
import json
import math
import traceback

import pytest

from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import Sample
from orbax_bench_core.records.errors import ErrorInfo
from orbax_bench_core.records.record import Attempt, Record, State, parse_record
from orbax_bench_core.records.store_troubles import StoreTrouble
from orbax_bench_core.records.versions import OtherVersion

ERROR = ErrorInfo(type="ValueError", message="no", traceback="Traceback ...")


def test_a_record_comes_back_from_json_as_it_was(make_record):
    record = make_record(
        times={"save": 0.1 + 0.2},
        sizes={"save": 1e100},
        status="failed",
        error=ERROR,
        state=State(num_bytes=8, digest={"a": "ff"}, verified="saved"),
        attempts=(Attempt(error=ERROR, started_at="2026-01-01T00:00:00Z", duration_s=1.0),),
    )
    assert Record.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_json_has_no_number_for_comes_back(make_record, value):
    record = make_record(times={"save": value})
    back = Record.model_validate_json(record.model_dump_json())
    assert str(back.samples[0].value) == str(value)


def test_what_is_long_or_no_text_in_an_error_is_kept_as_far_as_a_file_can():
    error = ErrorInfo(type="T\ud800", message="m" * 50_000_000, traceback="\udcff" + "t" * 10**7)
    assert len(error.model_dump_json()) < 250_000
    assert error.type == "T\\ud800"
    assert "50,000,000 characters" in error.message


def test_the_point_of_a_record_keeps_its_id(make_record, make_point):
    record = make_record(make_point(options={"a": 1.0, "b": [True, None]}))
    assert Record.model_validate_json(record.model_dump_json()).point.id == record.point_id


@pytest.mark.parametrize(("status", "finished"), [("passed", 1), ("skipped", 1), ("failed", 0)])
def test_only_a_failed_repeat_is_tried_again(make_record, status, finished):
    assert make_record(status=status, error=ERROR).finished == bool(finished)


def test_a_failed_record_is_an_attempt_after_those_before_it(make_record):
    first = make_record(status="failed", error=ERROR, times={"save": 1.0})
    second = make_record(status="failed", error=ERROR, attempts=first.as_attempt())
    assert [attempt.samples for attempt in second.as_attempt()] == [
        (Sample("save", 0, "0_basics/time_s", 1.0, "s"),),
        (),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"value": 1.5', '"value": "many"'),
        ('"value": 1.5', '"value": -1.5'),
        ('"value": 1.5', '"value": NaN'),
        ('"value": 1.5', '"value": Infinity'),
        ('"value": 1.5', '"value": "NaN"'),
        ('"value": 1.5', '"value": 1e999'),
        ('"occurrence": 0', '"occurrence": "first"'),
        ('"status": "passed"', '"status": "fine"'),
        ('"repeat": 0', '"repeat": null'),
        ('"suite"', '"sweet"'),
    ],
)
def test_what_the_model_refuses_is_no_record(make_record, before, after):
    text = make_record(times={"save": 1.5}).model_dump_json(indent=1)
    assert before in text
    assert parse_record(text.replace(before, after, 1).encode()) is None


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        ('"status"', '"unknown": 1, "status"', "this one knows no unknown"),
        ('"operation"', '"unknown": 1, "operation"', r"this one knows no samples\.0\.unknown"),
        ('"schema_version": 5', '"schema_version": 6', "schema 6; this one reads 3, 4 and 5"),
    ],
)
def test_a_newer_record_is_called_newer(make_record, before, after, how):
    text = make_record(times={"save": 1.5}).model_dump_json(indent=1)
    said = rf"^written by a newer orbax-bench \({how}\): upgrade orbax-bench$"
    with pytest.raises(OtherVersion, match=said):
        parse_record(text.replace(before, after, 1).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[" * 100_000, b"\xff", b'{"a": "\\ud800"}'])
def test_what_is_torn_is_no_record(data):
    assert parse_record(data) is None


@pytest.mark.parametrize("name", ["git", "versions"])
def test_a_record_whose_provenance_has_another_form_is_none(make_record, name):
    content = json.loads(make_record().model_dump_json())
    content["provenance"][name] = ["jax"]
    assert parse_record(json.dumps(content).encode()) is None


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
            assert parse_record(data) is None, (path, wrong)


def test_a_time_that_no_computation_can_go_on_from_is_none(make_record):
    text = make_record(started_at="2026-01-01T00:00:00Z").model_dump_json()
    for year in ("0001", "9999"):
        assert parse_record(text.replace("2026-01-01T", f"{year}-01-01T").encode()) is None


@pytest.mark.parametrize(
    ("code", "certain"),
    [
        ("undefined", True),
        ("import no_such_library", True),
        ("from json import no_such_name", True),
        ("None.nothing", True),
        ("import json; json.loads(text='')", True),
        ("import json; json.loads(None)", False),  # raised by a library, of what it was given
        ("import json; json.loads('{')", False),
        ("raise RuntimeError('busy')", False),
    ],
)
def test_a_bug_of_the_class_and_a_lack_fail_again_in_the_same_way(tmp_path, code, certain):
    module = tmp_path / "my_bench.py"
    with pytest.raises(Exception) as caught:
        exec(compile(code, str(module), "exec"), {})
    lines = "".join(traceback.format_exception(caught.value))
    said = lines.replace(__file__, "orbax_bench_core/worker/repeat.py")  # which calls authors' code
    error = ErrorInfo(type=caught.type.__name__, message="m", traceback=said)
    assert error.certain == certain
