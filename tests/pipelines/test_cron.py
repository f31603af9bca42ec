import datetime
import zoneinfo

import pytest

pytest.importorskip("cronsim")

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.cron import parse_cron
from orbax_bench_pipelines.targets import Target


def refusal(text, zone=None):
    with pytest.raises(UserError) as error:
        parse_cron(text, zone)
    return str(error.value)


@pytest.mark.parametrize(
    ("weekday", "portable"), [("7", "0"), ("5-7", "0,5,6"), ("MON-FRI", "MON-FRI"), ("1,7", "0,1")]
)
def test_sunday_is_zero_where_the_services_know_no_seven(weekday, portable):
    assert parse_cron(f"0 3 * * {weekday}").sent(Target.KFP) == f"0 0 3 * * {portable}"


@pytest.mark.parametrize(
    ("text", "at_fault"),
    [
        ("61 3 * * *", "minute '61'; expected 0-59"),
        ("0 3 * * 8", "day of week '8'; expected 0-7"),
        ("0 3 L * *", "day of month 'L'"),
        ("0 3 * * 5L", "day of week '5L'"),
        ("0 3 ? * *", "day of month '?'"),
        ("*/0 3 * * *", "minute '*/0'"),
    ],
)
def test_the_field_at_fault_is_named(text, at_fault):
    assert at_fault in refusal(text)


@pytest.mark.parametrize("text", ["", "0 3 * *", "0 0 3 * * *", "TZ=UTC 0 3 * * *", "@daily"])
def test_another_number_of_fields_is_refused(text):
    assert "expected five fields" in refusal(text)


def test_a_day_that_never_comes_is_refused():
    assert "never fires" in refusal("0 0 31 2 *")


@pytest.mark.parametrize("zone", ["Mars", "../etc", "/etc/passwd"])
def test_an_unknown_time_zone_is_refused(zone):
    assert "IANA names look like" in refusal("0 3 * * *", zone)


def test_the_next_times_are_in_the_time_zone():
    first, second = parse_cron("30 3 * * *", "Asia/Tokyo").upcoming(2)
    assert (first.hour, first.minute) == (3, 30)
    assert first.tzinfo == zoneinfo.ZoneInfo("Asia/Tokyo")
    assert second - first == datetime.timedelta(days=1)
