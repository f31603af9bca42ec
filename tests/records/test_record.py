"""The JSON of one repeat."""

import math

import pydantic
import pytest

from orbax_bench_core.measure import Sample
from orbax_bench_core.records.record import Attempt, ErrorInfo, OptionEffect, Record, State

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


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_comes_back_from_json(make_record, value):
    record = make_record(times={"save": value})
    assert Record.model_validate_json(record.model_dump_json()).samples[0].value == value


def test_what_is_long_or_no_text_in_an_error_is_kept_as_far_as_a_file_can():
    error = ErrorInfo(type="T\ud800", message="m" * 50_000_000, traceback="\udcff" + "t" * 10**7)
    assert len(error.model_dump_json()) < 250_000
    assert error.type == "T\\ud800"
    assert "50,000,000 characters" in error.message


def test_nan_comes_back_from_json(make_record):
    record = make_record(times={"save": math.nan})
    back = Record.model_validate_json(record.model_dump_json())
    assert math.isnan(back.samples[0].value)


def test_the_point_of_a_record_keeps_its_id(make_record, make_point):
    record = make_record(make_point(options={"a": 1.0, "b": [True, None]}))
    assert Record.model_validate_json(record.model_dump_json()).point.id == record.point_id


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"schema_version": 4}, id="schema version"),
        pytest.param({"status": "maybe"}, id="status"),
        pytest.param({"unknown": 1}, id="unknown key"),
    ],
)
def test_a_record_of_another_layout_is_refused(make_record, change):
    data = {**make_record().model_dump(mode="json"), **change}
    with pytest.raises(pydantic.ValidationError, match=next(iter(change))):
        Record.model_validate(data)


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


def test_an_effect_of_an_earlier_record_has_the_name_of_today():
    given = {"option": "n", "asked": 1, "state": "not decidable", "proof": ""}
    assert OptionEffect.model_validate(given).state == "not proved"
