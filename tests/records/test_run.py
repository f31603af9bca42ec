"""The read model of a run."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Run, State, load_run
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


def test_each_arm_is_a_series_of_its_own(paired_run):
    run, pair = paired_run
    series = Run(run).series()
    assert [one.id for one in series] == [f"{pair.id}-baseline", f"{pair.id}-candidate"]
    assert [one.point.label for one in series] == [
        "use_ocdbt=true,arm=baseline",
        "use_ocdbt=true,arm=candidate",
    ]


def test_tables_keep_the_arms_apart(paired_run):
    run, _ = paired_run
    found = summarize(Run(run).repeats()).operations
    assert [(one.time.n, one.time.median) for one in found] == [(2, 1.0), (2, 2.0)]


def test_the_run_itself_stays_as_it_is(paired_run):
    run, pair = paired_run
    before = run.read_info()
    list(Run(run).repeats())
    assert run.read_info() == before
    assert [record.point_id for record in Run(run).records()] == [pair.id] * 4


def test_one_series_can_be_read_alone(paired_run):
    run = Run(paired_run[0])
    for series in run.series():
        assert {repeat.series for repeat in run.repeats(series)} == {series}
        assert list(run.operation_times(series)) == [series.id]


def test_warm_ups_are_left_out_unless_asked_for(make_run, make_record):
    run = Run(make_run([make_record(warmup=True), make_record()]))
    assert [repeat.warmup for repeat in run.repeats()] == [False]
    assert [repeat.warmup for repeat in run.repeats(warmups=True)] == [True, False]


def test_a_pair_is_read_as_blocks(paired_run):
    run, pair = paired_run
    assert Run(run).paired(pair).times["save"].tolist() == [[1.0, 2.0, 2.0, 1.0]]


@pytest.mark.slow
def test_samples_are_a_frame_with_a_column_per_option(make_run, make_record, make_point):
    points = [make_point(options={"a": 1}), make_point(options={"a": 2, "b": "x"})]
    records = [make_record(point, times={"save": 0.5}) for point in points]
    frame = Run(make_run(records, points=points)).samples()
    assert frame["option.a"].tolist() == [1, 2]
    assert frame["option.b"].isna().tolist() == [True, False]
    assert frame["value"].tolist() == [0.5, 0.5]


@pytest.mark.slow
def test_times_are_a_frame_with_a_row_per_series_repeat_and_operation(paired_run):
    run, pair = paired_run
    frame = Run(run).times()
    assert frame.columns.tolist()[-2:] == ["operation", "seconds"]
    assert frame.groupby("arm")["seconds"].median().to_dict() == {"baseline": 1.0, "candidate": 2.0}
    assert set(frame["series_id"]) == {f"{pair.id}-baseline", f"{pair.id}-candidate"}
    assert frame["option.use_ocdbt"].all()


@pytest.mark.slow
def test_a_run_without_a_record_has_empty_frames(make_run, make_point):
    run = Run(make_run([], points=[make_point()]))
    assert run.samples().empty
    assert run.times().empty


@pytest.mark.slow
def test_a_failed_repeat_has_samples_and_no_times(make_run, make_record):
    run = Run(make_run([make_record(status="failed", times={"save": 1.0})]))
    assert run.samples()["status"].tolist() == ["failed"]
    assert run.times().empty


def test_what_is_no_run_is_one_message(tmp_path):
    with pytest.raises(UserError, match="not a run directory"):
        load_run(str(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 3}', '{"other": "program"}'])
def test_a_run_of_another_kind_is_one_message(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match="schema version") as caught:
        load_run(str(tmp_path))
    assert len(caught.value.problems) == 1


@pytest.fixture
def swept(make_point, make_record, make_run):
    """A run of two points that differ in one option, of which one never passed."""
    points = [make_point(options={"use_ocdbt": value, "n": 1}) for value in (True, False)]
    failed = {"status": "failed", "error": {"type": "ValueError", "message": "no"}}
    records = [
        make_record(points[0], 0, times={"save": 1.0, "load": 0.5}),
        make_record(points[0], 1, times={"save": 3.0, "load": 0.5}),
        make_record(points[1], 0, **failed),
    ]
    return Run(make_run(records, points=points))


def test_medians_have_a_column_for_each_option_that_differs_and_each_operation(swept):
    frame = swept.medians()
    assert list(frame.columns) == ["use_ocdbt", "repeats", "failed", "save [s]", "load [s]"]
    assert frame.iloc[0].to_list() == [True, 2, 0, 2.0, 0.5]
    assert frame.iloc[1].to_list()[:3] == [False, 0, 1]
    assert frame["save [s]"].isna().to_list() == [False, True]


def test_medians_keep_the_arms_apart(paired_run):
    frame = Run(paired_run[0]).medians()
    assert list(frame.columns) == ["arm", "repeats", "failed", "save [s]"]
    assert frame["arm"].to_list() == ["baseline", "candidate"]


def test_a_notebook_shows_a_run_as_a_table(swept):
    shown = swept._repr_html_()
    assert "<th>use_ocdbt</th>" in shown
    assert "<td>2</td>" in shown
    assert str(swept.directory.root) in shown
    swept.info = swept.info.model_copy(update={"suite_name": "<script>"})
    assert "<script>" not in swept._repr_html_()


def test_a_run_of_nothing_yet_is_shown_too(make_point, make_run):
    assert Run(make_run([], points=[make_point()])).medians()["repeats"].to_list() == [0]


@pytest.mark.parametrize(
    ("hosts", "together"),
    [
        (("saved", "saved"), "saved"),
        (("reference", "saved"), "reference"),
        (("saved", "itself"), "itself"),
        (("none", "saved"), "none"),
        (("saved", None), "none"),
    ],
)
def test_a_repeat_is_verified_as_its_weakest_host_is(make_run, make_record, hosts, together):
    records = [
        make_record(
            host=host,
            num_hosts=len(hosts),
            state=against and State(num_bytes=8, digest={}, verified=against),
        )
        for host, against in enumerate(hosts)
    ]
    (repeat,) = Run(make_run(records)).repeats()
    assert repeat.verified == together
