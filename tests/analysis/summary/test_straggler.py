"""Stragglers: the host that the others waited for."""

import pytest

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.hosts import stragglers_of
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import repeats_of

STAGE = "2_save_breakdown/worker_io_s"


@pytest.fixture
def repeat(make_record):
    """One repeat of `save`: (seconds, seconds in the stage) by host."""

    def build(*hosts, index=0, **fields):
        return [
            make_record(
                repeat=index,
                host=host,
                num_hosts=len(hosts),
                samples=(
                    Sample("save", 0, TIME, total, "s"),
                    Sample("save", 0, STAGE, stage, "s"),
                ),
                **fields,
            )
            for host, (total, stage) in enumerate(hosts)
        ]

    return build


def found(*repeats):
    return list(stragglers_of(repeats).values())


def test_the_host_that_is_slowest_most_often(repeat):
    [straggler] = found(
        repeat((1, 0), (2, 0), (1, 0)),
        repeat((1, 0), (2, 0), (1, 0)),
        repeat((3, 0), (2, 0), (1, 0)),
    )
    assert (straggler.host, straggler.slowest, straggler.repeats) == (1, 2, 3)


def test_its_excess_is_over_the_median_host(repeat):
    [straggler] = found(repeat((1.0, 0), (4.0, 0), (1.5, 0)))
    assert straggler.excess_s == 2.5


def test_the_stage_is_where_it_exceeded_the_median_host_by_most(repeat):
    [straggler] = found(repeat((1.0, 0.2), (4.0, 3.0), (1.5, 0.4)))
    assert straggler.stage == STAGE
    assert straggler.stage_excess_s == pytest.approx(2.6)


def test_a_single_host_has_no_straggler(repeat):
    assert found(repeat((1.0, 0.5))) == []


def test_an_operation_counts_by_its_slowest_host(repeat):
    summary = summarize(
        repeats_of([*repeat((1.0, 0), (3.0, 0)), *repeat((2.0, 0), (1.0, 0), index=1)])
    )
    [operation] = summary.operations
    assert (operation.time.n, operation.time.minimum, operation.time.maximum) == (2, 2.0, 3.0)
    assert operation.straggler is not None


def test_metrics_keep_every_host(repeat):
    summary = summarize(repeats_of(repeat((1.0, 0), (3.0, 0))))
    [time] = [metric for metric in summary.metrics if metric.metric == TIME]
    assert (time.n, time.hosts, time.mean) == (2, 2, 2.0)


def test_defect_21_a_repeat_that_lacks_a_host_is_never_aggregated(repeat):
    summary = summarize(repeats_of(repeat((1.0, 0), (3.0, 0))[:1]))
    assert summary.operations == []
    [point] = summary.points
    assert (point.passed, point.failed) == (0, 1)
    assert point.reason == "no record of host(s) 1"


def test_a_duration_that_is_not_of_work_is_no_stage(make_record):
    waited = "2_save_breakdown/duration_since_last_save_s"
    hosts = [
        make_record(
            host=host,
            num_hosts=2,
            samples=(
                Sample("save", 0, TIME, 1.0 + host, "s"),
                Sample("save", 0, waited, host, "s"),
            ),
        )
        for host in (0, 1)
    ]
    [straggler] = found(hosts)
    assert straggler.stage is None
