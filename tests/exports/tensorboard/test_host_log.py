"""Log of one host, a step per repeat."""

import pytest

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo

ERROR = ErrorInfo(type="ValueError", message="no room", traceback="Traceback:\n  line 1")


def test_a_scalar_has_the_guides_tag_and_a_step_per_repeat(written, make_record):
    records = [make_record(repeat=repeat, times={"save": repeat + 0.5}) for repeat in range(3)]
    found = written(records, "host_0").scalars("save_0_basics/time_s")
    assert found == [(0, 0.5), (1, 1.5), (2, 2.5)]


def test_warm_ups_stay_out(written, make_record):
    records = [make_record(times={"save": 9.0}, warmup=True), make_record(times={"save": 0.5})]
    assert written(records, "host_0").scalars("save_0_basics/time_s") == [(0, 0.5)]


def test_a_later_occurrence_of_a_name_has_a_tag_of_its_own(written, make_record):
    samples = (Sample("save", 0, TIME, 1.0, "s"), Sample("save", 1, TIME, 2.0, "s"))
    tags = written([make_record(samples=samples)], "host_0").tags("scalars")
    assert tags == {
        "0_time/save_s",
        "0_time/save[1]_s",
        "save_0_basics/time_s",
        "save[1]_0_basics/time_s",
    }


@pytest.mark.parametrize("folder", ["host_0", "__summary__"])
def test_the_first_scalars_are_times(written, make_record, folder):
    samples = (Sample("load", 0, "0_basics/cpu_s", 9.0, "s"), Sample("load", 0, TIME, 2.0, "s"))
    found = written([make_record(samples=samples)], folder)
    assert min(found.tags("scalars")) == "0_time/load_s"
    assert found.scalars("0_time/load_s") == [(0, 2.0)]


def test_a_tag_says_what_it_means_and_in_which_unit(written, make_record):
    found = written([make_record(times={"save": 1.0})], "host_0")
    description = found.reader.SummaryMetadata("save_0_basics/time_s").summary_description
    assert description.startswith("Wall-clock time")
    assert description.endswith("[s]")


def test_a_metric_that_nobody_registered_is_shown_without_description(written, make_record):
    record = make_record(samples=(Sample("save", 0, "own/thing", 1.0, ""),))
    metadata = written([record], "host_0").reader.SummaryMetadata("save_own/thing")
    assert metadata.summary_description == ""


def test_a_failed_repeat_leaves_its_error(written, make_record):
    records = [
        make_record(times={"save": 0.5}),
        make_record(repeat=1, status="failed", error=ERROR),
    ]
    [(step, text)] = written(records, "host_0").texts("error")
    assert step == 1
    assert "**ValueError**: no room" in text
    assert "  line 1" in text


def test_what_a_failed_repeat_measured_is_no_scalar(written, make_record):
    record = make_record(times={"save": 0.5}, status="failed", error=ERROR)
    assert written([record], "host_0").tags("scalars") == set()


def test_a_skipped_repeat_is_no_error(written, make_record):
    record = make_record(status="skipped", error=ERROR)
    assert written([record], "host_0").tags("text") == {"skipped"}


@pytest.mark.parametrize("seconds", [1e-6, 1.2345678, 98765.43])
def test_defect_22_times_keep_seven_digits(written, make_record, seconds):
    [(_, value)] = written([make_record(times={"save": seconds})], "host_0").scalars(
        "save_0_basics/time_s"
    )
    assert value == pytest.approx(seconds, rel=1e-7)


def test_defect_22_three_repeats_show_three_values(written, make_record):
    records = [make_record(repeat=repeat, times={"save": 1 + repeat / 1e6}) for repeat in range(3)]
    found = written(records, "host_0").scalars("save_0_basics/time_s")
    assert len({value for _, value in found}) == 3
