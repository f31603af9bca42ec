"""Everything that is derived from records, written into the run directory."""

import csv
import io
from pathlib import Path

import pyarrow.parquet
import pytest

from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.steps.reporting import publish
from tests.support.summaries import eventful_run, pages  # noqa: F401 - fixtures

OUTPUTS = ("samples.parquet", "summary.csv", "report.md", "report.html", "run.json")
ERROR = ErrorInfo(type="ValueError", message="no")


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_output_is_written(eventful_run, name):
    publish(eventful_run)
    assert (eventful_run.root / name).stat().length > 0


def test_samples_and_summary_hold_what_the_records_hold(eventful_run):
    publish(eventful_run)
    table = pyarrow.parquet.read_table(str(eventful_run.root / "samples.parquet"))
    rows = list(csv.DictReader(io.StringIO((eventful_run.root / "summary.csv").read_text())))
    assert table.num_rows == len(rows) == 4


def test_the_summary_is_returned(eventful_run):
    summary = publish(eventful_run)
    assert [(point.passed, point.failed) for point in summary.points] == [(1, 0), (1, 0), (0, 1)]


def every_file(run):
    root = Path(run.root)
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_publishing_again_changes_no_byte(eventful_run):
    publish(eventful_run)
    before = every_file(eventful_run)
    publish(eventful_run)
    assert every_file(eventful_run) == before


@pytest.fixture
def status_of(make_run):
    """Publishes a run and says what its status then is."""

    def find(records, **fields):
        run = make_run(records, **fields)
        publish(run)
        return run.read_info().status

    return find


def test_a_run_with_every_repeat_is_complete(status_of, make_record):
    assert status_of([make_record(repeat=0), make_record(repeat=1)], num_repeats=2) == "complete"


def test_a_skipped_repeat_is_finished(status_of, make_record):
    assert status_of([make_record(status="skipped", error=ERROR)]) == "complete"


@pytest.mark.parametrize("fields", [{"status": "failed", "error": ERROR}, {"warmup": True}])
def test_a_failed_repeat_and_a_warm_up_are_not_finished(status_of, make_record, fields):
    assert status_of([make_record(**fields)]) == "incomplete"


def test_a_run_that_lacks_a_repeat_is_incomplete(status_of, make_record):
    assert status_of([make_record()], num_repeats=2) == "incomplete"


def test_a_run_that_lacks_a_point_is_incomplete(status_of, make_record, make_point):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    assert status_of([make_record(points[0])], points=points) == "incomplete"


def test_more_repeats_of_one_point_do_not_stand_in_for_another(status_of, make_record, make_point):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    records = [*(make_record(points[0], repeat) for repeat in range(3)), make_record(points[1])]
    assert status_of(records, num_repeats=2) == "incomplete"


def test_a_run_without_records_is_published_too(status_of, make_point):
    assert status_of([], points=[make_point()]) == "incomplete"


def test_a_record_that_cannot_be_read_does_not_stop_the_others(eventful_run):
    first = next(eventful_run.records())
    folder = eventful_run.root / "records" / first.point_id / "repeat_0"
    (folder / "host_0.json").write_text("{")
    assert [point.passed for point in publish(eventful_run).points] == [1, 0]
    assert eventful_run.read_info().status == "incomplete"
