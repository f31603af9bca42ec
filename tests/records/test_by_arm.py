"""A paired run as one series per arm."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.records.run import ByArm
from orbax_bench_core.sweep import Pair


@pytest.fixture
def paired_run(make_point, make_record, make_run):
    """An A/A run: the sides have the same content."""
    point = make_point()
    pair = Pair(baseline=point, candidate=point)
    arms = ("baseline", "candidate", "candidate", "baseline")
    records = [
        make_record(pair, repeat, arm=arm, block=0, times={"save": 1.0 + (arm == "candidate")})
        for repeat, arm in enumerate(arms)
    ]
    return make_run(records, points=[pair]), pair


def test_each_arm_is_a_point_of_its_own(paired_run):
    run, pair = paired_run
    points = ByArm(str(run.root)).read_info().expansion.points
    assert [point.id for point in points] == [f"{pair.id}-baseline", f"{pair.id}-candidate"]
    assert [point.label for point in points] == [
        "use_ocdbt=true,arm=baseline",
        "use_ocdbt=true,arm=candidate",
    ]


def test_tables_keep_the_arms_apart(paired_run):
    run, _ = paired_run
    found = summarize(ByArm(str(run.root)).records()).operations
    assert [(one.time.n, one.time.median) for one in found] == [(2, 1.0), (2, 2.0)]


def test_the_run_itself_stays_as_it_is(paired_run):
    run, pair = paired_run
    before = run.read_info()
    ByArm(str(run.root)).read_info()
    assert run.read_info() == before
    assert [record.point_id for record in run.records()] == [pair.id] * 4
