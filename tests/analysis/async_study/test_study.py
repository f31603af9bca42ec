"""Pairing of points in an async study, and notes on those that are left out."""

import itertools
import json
import random
from pathlib import Path

import pytest

from orbax_bench_core.analysis.async_study import study_document
from orbax_bench_core.analysis.async_study.lines import fit_of, line_through
from orbax_bench_core.analysis.async_study.model import SaveKind, Size
from orbax_bench_core.analysis.async_study.parameters import ParameterCounter, parameters_in
from orbax_bench_core.analysis.async_study.reasons import SENTENCES
from orbax_bench_core.analysis.async_study.study import (
    async_study,
    check_points,
    ratio_of,
    seconds_of,
)
from orbax_bench_core.answers import ASYNC_STUDY
from orbax_bench_core.config import (
    CheckpointConfig,
    Conditions,
    ExecutionConfig,
    MeshConfig,
    parse_suite,
)
from orbax_bench_core.errors import UserError
from orbax_bench_core.gate import arrangements
from orbax_bench_core.lineage import read_manifest
from orbax_bench_core.publishing import publish_answer
from orbax_bench_core.reasons import because, in_words
from orbax_bench_core.records import ErrorInfo, Run
from orbax_bench_core.sweep import Pair
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401
from tests.support.shown import terminal

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
    alone, _ = found.notes
    assert (alone.code, alone.values["value"]) == ("no_partner", "false")
    assert "10000000,async=True" in alone.values["point"]


def test_repeats_that_failed_are_left_out_and_told(study, make_pair):
    records = make_pair(MILLION)
    error = ErrorInfo(type="OSError", message="disk full")
    records[0] = records[0].model_copy(update={"status": "failed", "error": error})
    found = study(records)
    blocking = found.series[0].sizes[0].blocking
    assert (blocking.failed, blocking.blocked.n) == (1, 5)
    failed, _ = found.notes
    assert (failed.values["left_out"], failed.values["repeats"]) == (1, 6)
    assert "disk full" in failed.values["said"]


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
    assert because("no_record", point="save_restore[waiting]")[0] in found.notes


def test_a_run_that_measured_one_kind_after_the_other_says_so(make_sizes):
    run = make_sizes()
    info = run.read_info()
    assert async_study(Run(run), ParameterCounter()).notes == ()
    run.write_info(info.model_copy(update={"execution": ExecutionConfig(order="sequential")}))
    found = async_study(Run(run), ParameterCounter())
    assert found.notes == because("sequential")
    said = study_document(found)
    assert "one kind of save was measured after the other" in " ".join(terminal(said).split())
    content = {**found.model_dump(mode="json"), "schema_version": 1}
    content["notes"] = [in_words(SENTENCES, note) for note in found.notes]
    (run.root / ASYNC_STUDY.file).write_text(json.dumps(content))
    assert study_document(ASYNC_STUDY.read(run)) == said


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


MEGABYTES = 10**6
BYTES = [MEGABYTES, 30 * MEGABYTES, 1000 * MEGABYTES]


def exactly(times):
    return [seconds_of([seconds]) for seconds in times]


def sized(num_bytes, sync, background):
    def kind(seconds):
        times = seconds_of([seconds])
        return SaveKind(point_ids=("p",), failed=0, blocked=times, total=times)

    ratio = ratio_of([background], [sync])
    return Size(
        checkpoint="c",
        num_parameters=None,
        num_bytes=num_bytes,
        blocking=kind(sync),
        background=kind(background),
        saved=ratio.complement,
        overhead=ratio,
    )


def test_times_on_a_line_give_the_line():
    line = line_through(BYTES, exactly(0.1 + size / 1e8 for size in BYTES))
    assert line.fixed_s == pytest.approx(0.1)
    assert line.bytes_per_s == pytest.approx(1e8)
    assert line.worst == pytest.approx(0, abs=1e-9)


def test_times_that_fall_give_no_speed_rather_than_a_negative_one():
    line = line_through(BYTES, exactly([0.3, 0.2, 0.1]))
    assert (line.s_per_byte, line.bytes_per_s, line.flat) == (0, None, True)


def test_the_limit_is_one_less_the_ratio_of_the_speeds():
    fit = fit_of([sized(size, 0.1 + size / 1e8, 0.05 + size / 1e9) for size in BYTES])
    assert fit.limit == pytest.approx(0.9)
    assert fit.holds


def test_medians_far_from_a_line_do_not_hold():
    assert not fit_of(
        [sized(size, 1.0, wild) for size, wild in zip(BYTES, [1, 9, 1], strict=True)]
    ).holds


@pytest.mark.parametrize(("half", "flat"), [(0.02, False), (0.2, True)])
def test_growth_within_the_noise_is_not_shown(half, flat):
    """Medians that grow by a tenth, within intervals of 2 % or 20 % to each side."""
    times = [
        seconds_of([median * (1 - half), median, median * (1 + half)]) for median in (1, 1.05, 1.1)
    ]
    assert line_through(BYTES, times).flat == flat


@pytest.mark.parametrize(
    ("n", "low", "coverage"),
    [
        (1, 1, 0),
        (2, 1, 0.5),
        (3, 1, 0.75),
        (5, 1, 0.9375),
        (6, 1, 0.96875),
        (9, 2, 0.9609375),
        (12, 3, 0.9614),
    ],
)
def test_the_interval_of_a_median_is_between_order_statistics(n, low, coverage):
    found = seconds_of(random.Random(n).sample(range(1, n + 1), n))
    assert (found.n, found.low, found.high) == (n, low, n + 1 - low)
    assert found.coverage == pytest.approx(coverage, abs=1e-4)


@pytest.mark.slow
def test_the_interval_holds_the_median_as_often_as_it_says():
    draw = random.Random(0)
    samples = [seconds_of([draw.expovariate(1) for _ in range(7)]) for _ in range(4000)]
    held = sum(one.low <= 0.6931 <= one.high for one in samples) / len(samples)
    assert held == pytest.approx(samples[0].coverage, abs=0.01)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 5), (4, 3), (5, 5)])
def test_arrangements_are_those_of_brute_force(m, n):
    counts = [0] * (m * n + 1)
    for chosen in itertools.combinations(range(m + n), m):
        counts[sum(place - rank for rank, place in enumerate(chosen))] += 1
    assert arrangements(m, n) == counts


@pytest.mark.parametrize("n", [5, 8, 70])
def test_the_interval_is_that_of_the_rank_test(n):
    """An end is where the test of scipy goes from rejecting to accepting."""
    from scipy.stats import mannwhitneyu

    draw = random.Random(n)
    above = [draw.lognormvariate(0.3, 0.2) for _ in range(n)]
    below = [draw.lognormvariate(0, 0.2) for _ in range(n)]
    found = ratio_of(above, below)
    method = "exact" if n <= 60 else "asymptotic"

    def p(ratio):
        moved = [value * ratio for value in below]
        return mannwhitneyu(above, moved, method=method).pvalue

    for end, out in ((found.low, 0.999999), (found.high, 1.000001)):
        assert p(end * out) <= 0.051
        assert p(end / out) > 0.049


def test_three_repeats_of_each_kind_have_no_interval_and_four_have():
    three, four = ratio_of([1, 2, 3], [4, 5, 6]), ratio_of([1, 2, 3, 4], [5, 6, 7, 8])
    assert (three.low, three.high) == (None, None)
    assert (four.low, four.high) == (1 / 8, 4 / 5)


ARRAY = {"dtype": "float32", "shape": [10, 10]}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"params": ARRAY}, 100),
        ({"params": {"a": ARRAY, "b": ARRAY}, "opt_state": {"mu": ARRAY}, "step": "int"}, 200),
        ({"params": ARRAY, "batch_stats": ARRAY}, 100),
        ({"layer_0": ARRAY, "layer_1": {"w": ARRAY}}, 200),
        ({"model": ARRAY, "optimizer": {"m": ARRAY}, "step": {"dtype": "int32", "shape": []}}, 100),
        ({"scale": {"dtype": "float32", "shape": []}}, 1),
    ],
)
def test_a_spec_is_counted_without_the_state_of_its_optimizer(spec, count):
    assert parameters_in(CheckpointConfig(spec=spec).spec) == count


def test_a_point_whose_preset_is_a_spec_by_now_counts_the_same(make_point):
    mesh = MeshConfig(mesh_axes=["fsdp"], ici_parallelism={"fsdp": 8})
    checkpoint = CheckpointConfig(model="llama-8b", scale=0.1, optimizer="adamw")
    point = make_point(checkpoint=checkpoint, mesh=mesh)
    assert point.with_presets_expanded().checkpoint.model is None
    counter = ParameterCounter()
    assert counter(point) == counter(point.with_presets_expanded()) == 90_919_360


@pytest.mark.parametrize("fields", [{}, {"path": "/there/is/one"}, {"spec": {"step": "int"}}])
def test_what_nothing_tells_is_not_guessed(make_point, fields):
    assert ParameterCounter()(make_point(checkpoint=CheckpointConfig(**fields))) is None


@pytest.mark.slow
def test_an_nnx_model_beside_the_suite_is_counted(make_point):
    pytest.importorskip("flax")
    suite = Path(__file__).parents[2] / "state" / "suite.yaml"
    counter = ParameterCounter(str(suite))
    many = make_point(checkpoint=CheckpointConfig(nnx="nnx_models:Many"))
    assert counter(many) == 11 * 16 * 16  # neither statistics nor random keys


FILES = ["async_study.html", "async_study.json", "async_study.md"]


@pytest.mark.slow
def test_three_files_are_written_and_what_they_were_made_from(make_sizes):
    run = make_sizes()
    before = {path.name for path in run.root.iterdir()}
    publish_answer(run, ASYNC_STUDY)
    assert sorted({path.name for path in run.root.iterdir()} - before) == [*FILES, "lineage.json"]
    made = read_manifest(run).made
    assert made["async_study.json"].inputs == {"records": made["records"].digest}
    assert made["async_study.html"].inputs == {"async_study.json": made["async_study.json"].digest}
