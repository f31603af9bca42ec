"""Everything that is derived from records, written into the run directory."""

from pathlib import Path

import pytest

from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.publishing.reporting import publish, publish_verdicts
from orbax_bench_core.records import ErrorInfo, Run
from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.summaries import eventful_run, pages  # noqa: F401 - fixtures

ERROR = ErrorInfo(type="ValueError", message="no")


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


@pytest.mark.parametrize(
    ("given", "num_repeats", "status"),
    [
        ([{}, {"repeat": 1}], 2, "complete"),
        ([{"status": "skipped", "error": ERROR}], 1, "complete"),
        ([{"status": "failed", "error": ERROR}], 1, "incomplete"),
        ([{"warmup": True}], 1, "incomplete"),
        ([{}], 2, "incomplete"),
    ],
)
def test_a_run_is_complete_with_every_repeat(status_of, make_record, given, num_repeats, status):
    records = [make_record(**fields) for fields in given]
    assert status_of(records, num_repeats=num_repeats) == status


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
    first = next(Run(eventful_run).records())
    folder = eventful_run.root / "records" / first.point_id / "repeat_0"
    (folder / "host_0.json").write_text("{")
    assert [point.passed for point in publish(eventful_run).summary.points] == [1, 0]
    assert eventful_run.read_info().status == "incomplete"


@pytest.fixture
def settled(make_paired_run):
    """Publishes a paired run; returns its status, and whether the report says it is incomplete."""

    def find(**fields):
        run = make_paired_run(0, **fields)
        publish(run)
        return run.read_info().status, "UTC, incomplete" in (run.root / "report.md").read_text()

    return find


@pytest.mark.slow
def test_a_paired_run_whose_last_look_is_made_is_complete(settled):
    assert settled(blocks=30, sigma=0.6) == ("complete", False)


def test_a_paired_run_with_a_verdict_is_complete(settled):
    assert settled(ratio=1.0, sigma=0.001, blocks=10) == ("complete", False)


def test_a_paired_run_that_was_interrupted_is_incomplete(settled):
    assert settled(blocks=3) == ("incomplete", True)


def test_a_paired_run_without_a_record_is_incomplete(make_run, make_point):
    run = make_run([], points=[make_point(candidate=make_point(options={"use_ocdbt": False}))])
    publish(run)
    assert run.read_info().status == "incomplete"


def test_a_pair_of_which_both_arms_failed_is_incomplete(make_run, make_record, make_point):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    failed = {"status": "failed", "error": ERROR, "block": 0}
    records = [
        make_record(pair, repeat, arm=arm, **failed)
        for repeat, arm in enumerate(["baseline", "candidate"] * 2)
    ]
    run = make_run(records)
    publish(run)
    assert run.read_info().status == "incomplete"


@pytest.mark.slow
def test_the_verdicts_of_a_paired_run_settle_its_status_too(make_paired_run):
    run = make_paired_run(0, blocks=30, sigma=0.6)
    run.write_info(run.read_info().model_copy(update={"status": "running"}))
    publish_verdicts(run, compare_stored(str(run.root), None))
    assert run.read_info().status == "complete"
