"""Pairing of points in an async study, and notes on those that are left out."""

import pytest

from orbax_bench_core.analysis.async_study.study import (
    SEQUENTIAL,
    ParameterCounter,
    async_study,
    check_points,
)
from orbax_bench_core.config import (
    CheckpointConfig,
    Conditions,
    ExecutionConfig,
    MeshConfig,
    parse_suite,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import ErrorInfo, Run
from orbax_bench_core.sweep import Pair
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401

MILLION = 10**6
MESH = MeshConfig(mesh_axes=["fsdp"], ici_parallelism={"fsdp": 8})


@pytest.fixture
def study(make_run):
    """Returns the study of records."""

    def of(records, **fields):
        run = make_run(records, **fields)
        return async_study(Run(run), ParameterCounter())

    return of


def test_every_number_of_a_size_is_right(study, make_saves):
    found = study(
        [
            *make_saves(MILLION, False, [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0), (3.0, 3.0)]),
            *make_saves(MILLION, True, [(0.5, 5.0), (0.5, 6.0), (0.5, 7.0), (0.5, 8.0)]),
        ]
    )
    (size,) = found.series[0].sizes
    assert (size.num_parameters, size.num_bytes) == (MILLION, 2 * MILLION)
    assert size.blocking.blocked.median == 2.5
    assert (size.blocking.blocked.low, size.blocking.blocked.high) == (1.0, 4.0)
    assert (size.background.blocked.median, size.background.total.median) == (0.5, 6.5)
    # The ratios of the pairs are 1/2, 1/4, 1/6 and 1/8, each four times.
    assert size.saved.value == pytest.approx(1 - (1 / 4 + 1 / 6) / 2)
    assert (size.saved.low, size.saved.high) == (1 - 1 / 2, 1 - 1 / 8)
    assert (size.overhead.low, size.overhead.high) == (5 / 4, 8 / 1)


def test_sizes_are_in_order_and_have_the_lines_they_were_made_on(make_sizes):
    run = make_sizes()
    (series,) = async_study(Run(run), ParameterCounter()).series
    assert [size.num_parameters for size in series.sizes] == [10**6, 10**7, 10**8, 10**9]
    assert series.fit.limit == pytest.approx(0.9, abs=1e-3)
    saved = [size.saved.value for size in series.sizes]
    expected = [1 - (0.05 + 2 * n / 1e9) / (0.1 + 2 * n / 1e8) for n in (1e6, 1e7, 1e8, 1e9)]
    assert saved == pytest.approx(expected, abs=5e-3)
    assert series.name == "save_restore"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"options": {"use_zarr3": True}}, "use_zarr3"),
        ({"mesh": MESH}, "mesh=fsdp8"),
        ({"processes": 2}, "processes=2"),
        ({"conditions": Conditions(cache="cold")}, "cache=cold"),
        ({"storage": "/elsewhere"}, "storage=/elsewhere"),
    ],
)
def test_points_that_differ_in_more_are_another_series(study, make_pair, fields, name):
    if "processes" in fields:
        records = [
            record.model_copy(update={"num_hosts": 1}) for record in make_pair(MILLION, **fields)
        ]
    else:
        records = make_pair(MILLION, **fields)
    found = study([*make_pair(MILLION), *records])
    assert len(found.series) == 2
    assert name in found.series[1].name


def test_a_point_without_partner_is_told(study, make_pair, make_saves):
    found = study([*make_pair(MILLION), *make_saves(10 * MILLION, True, [(1.0, 2.0)])])
    assert len(found.series[0].sizes) == 1
    assert any(
        "10000000,async=True" in note and "no partner with `async_enabled: false`" in note
        for note in found.notes
    )


def test_repeats_that_failed_are_left_out_and_told(study, make_pair):
    records = make_pair(MILLION)
    error = ErrorInfo(type="OSError", message="disk full")
    records[0] = records[0].model_copy(update={"status": "failed", "error": error})
    found = study(records)
    blocking = found.series[0].sizes[0].blocking
    assert (blocking.failed, blocking.blocked.n) == (1, 5)
    assert any("1 of 6 repeats" in note and "disk full" in note for note in found.notes)


def test_warm_ups_do_not_count(study, make_pair, make_record):
    records = make_pair(MILLION)
    slow = records[0].model_copy(update={"warmup": True, "repeat": 0})
    assert study([slow, *records]).series[0].sizes[0].blocking.blocked.n == 6


def test_one_size_says_nothing_of_a_trend(study, make_pair):
    found = study(make_pair(MILLION))
    assert found.series[0].fit is None
    assert any("one size only" in note for note in found.notes)


def test_two_sizes_have_no_lines(study, make_pair):
    found = study([*make_pair(MILLION), *make_pair(2 * MILLION)])
    assert any("is told of 3 sizes or more" in note for note in found.notes)


def test_unknown_parameters_leave_the_bytes(study, make_pair):
    records = make_pair(MILLION, checkpoint=CheckpointConfig(path="/some/checkpoint"))
    found = study(records)
    assert found.series[0].sizes[0].num_parameters is None
    assert not found.series[0].by_parameters
    assert any("the number of parameters of checkpoint" in note for note in found.notes)


def test_names_of_checkpoints_do_not_part_pairs(study, make_saves):
    spec = {"params": {"dtype": "bfloat16", "shape": [MILLION]}}
    one, other = (CheckpointConfig(spec=spec, name=name) for name in ("one", "other"))
    found = study(
        [
            *make_saves(MILLION, False, [(1.0, 1.0)], checkpoint=one),
            *make_saves(MILLION, True, [(0.5, 1.0)], checkpoint=other),
        ]
    )
    assert len(found.series[0].sizes) == 1


def test_the_arms_of_a_pair_are_a_pair(make_point, make_record, make_run):
    spec = {"params": {"dtype": "bfloat16", "shape": [MILLION]}}
    sync, background = (
        make_point(options={"async_enabled": kind}, checkpoint=CheckpointConfig(spec=spec))
        for kind in (False, True)
    )
    pair = Pair(baseline=sync, candidate=background)
    state = {"num_bytes": 2 * MILLION, "digest": {}}
    records = [
        make_record(
            pair, repeat, arm=arm, block=0, state=state, times={"save_blocking": took, "save": 2.0}
        )
        for repeat, (arm, took) in enumerate(
            [("baseline", 2.0), ("candidate", 0.5), ("candidate", 0.5), ("baseline", 2.0)]
        )
    ]
    run = make_run(records)
    (series,) = async_study(Run(run), ParameterCounter()).series
    assert series.sizes[0].saved.value == 0.75


@pytest.mark.parametrize("kind", ["none", "one", "failed", "other"])
def test_a_run_without_both_kinds_is_refused_with_what_is_needed(
    make_run, make_saves, make_record, make_point, kind
):
    records = {
        "none": [make_record(times={"save": 1.0})],
        "one": make_saves(MILLION, True, [(1.0, 2.0)]),
        "failed": [
            record.model_copy(update={"status": "failed", "samples": ()})
            for sort in (True, False)
            for record in make_saves(MILLION, sort, [(1.0, 2.0)])
        ],
        "other": [
            make_record(make_point(options={"async_enabled": sort}), times={"load": 1.0})
            for sort in (True, False)
        ],
    }[kind]
    run = make_run(records)
    with pytest.raises(UserError, match=r"both ways: .*examples/async_study\.yaml"):
        async_study(Run(run), ParameterCounter())


def test_points_not_yet_run_are_told(make_run, make_pair, make_point):
    records = make_pair(MILLION)
    waiting = make_point(options={"async_enabled": True, "more": 1}, label="waiting")
    points = [*{record.point_id: record.point for record in records}.values(), waiting]
    run = make_run(records, points=points)
    found = async_study(Run(run), ParameterCounter())
    assert "save_restore[waiting]: no repeat has a record yet" in found.notes


def test_a_run_that_measured_one_kind_after_the_other_says_so(make_sizes):
    run = make_sizes()
    info = run.read_info()
    assert SEQUENTIAL not in async_study(Run(run), ParameterCounter()).notes
    run.write_info(info.model_copy(update={"execution": ExecutionConfig(order="sequential")}))
    assert async_study(Run(run), ParameterCounter()).notes[0] == SEQUENTIAL


def test_a_new_study_without_turns_is_refused_at_its_key(make_saves):
    suite = parse_suite(
        "suite_name: s\nexecution: {order: sequential}\n"
        "benchmarks: [{generator: save_restore, options: {async_enabled: [false, true]}}]\n"
    )
    points = [
        make_saves(MILLION, background, [(1.0, 1.0)])[0].point for background in (False, True)
    ]
    with pytest.raises(UserError, match=r"execution\.order.*have to take turns"):
        check_points(points, suite)


def test_the_name_that_orbax_gives_the_option_of_dcp_pairs_points_too(study, make_saves):
    named = {
        kind: make_saves(MILLION, True, [(1.0, 2.0)] * 2, options={"enable_async_save": kind})
        for kind in (False, True)
    }
    found = study([*named[False], *named[True]])
    assert len(found.series[0].sizes) == 1
