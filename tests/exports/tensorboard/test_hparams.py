"""Columns and rows of the HParams tab."""

import pytest
from tensorboard.plugins.hparams import api_pb2, metadata

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.exports.tensorboard import hparams
from tests.support.repeats import series_of


@pytest.fixture
def rows(make_point):
    """The rows of points with these options."""

    def make(*options, **fields):
        points = [make_point(options=one, **fields) for one in options]
        return list(hparams.columns(map(series_of, points)).values())

    return make


@pytest.fixture
def infos():
    """What the tab is told of each column."""

    def parse(rows):
        content = hparams.experiment("a suite", 5.0, rows, [])
        return {
            info.name: info for info in metadata.parse_experiment_plugin_data(content).hparam_infos
        }

    return parse


@pytest.mark.parametrize("value", [True, 3, 0.5, "text"])
def test_plain_options_keep_their_type(rows, value):
    [row] = rows({"option": value})
    assert (row["option"], type(row["option"])) == (value, type(value))


def test_none_leaves_the_cell_empty(rows):
    assert "option" not in rows({"option": None}, {"option": 3})[0]


def test_lists_become_text(rows):
    assert rows({"option": [1, 2]})[0]["option"] == "[1, 2]"


def test_nested_options_are_flattened(rows):
    assert rows({"outer": {"inner": 3}})[0]["outer.inner"] == 3


def test_a_column_of_several_types_becomes_text(rows):
    assert [row["option"] for row in rows({"option": "auto"}, {"option": 3})] == ["auto", "3"]


def test_true_is_not_the_number_1(rows):
    assert [row["option"] for row in rows({"option": True}, {"option": 1})] == ["true", "1"]


def test_whole_numbers_and_fractions_are_one_type(rows):
    assert [row["option"] for row in rows({"option": 1}, {"option": 0.5})] == [1, 0.5]


def test_mesh_checkpoint_and_processes_are_columns_too(rows):
    mesh = MeshConfig(mesh_axes=("fsdp",), ici_parallelism={"fsdp": 8})
    [row] = rows({}, mesh=mesh, processes=2)
    expected = {"benchmark": "save_restore", "mesh": "fsdp8", "devices": 8, "processes": 2}
    assert expected.items() <= row.items()


def test_conditions_are_columns_too(rows):
    assert rows({})[0]["cache"] == "warm"


def test_an_option_that_is_called_like_a_column_of_ours_says_that_it_is_one(rows):
    [row] = rows({"checkpoint": 3})
    assert (row["options.checkpoint"], row["checkpoint"]) == (3, "none")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (({"o": 1}, {"o": 0.5}), api_pb2.DATA_TYPE_FLOAT64),
        (({"o": True}, {"o": False}), api_pb2.DATA_TYPE_BOOL),
        (({"o": "b"}, {"o": "a"}), api_pb2.DATA_TYPE_STRING),
    ],
)
def test_columns_are_declared_with_their_type(make_point, infos, options, expected):
    points = [make_point(options=one) for one in options]
    assert infos(hparams.columns(map(series_of, points)))["o"].type == expected


def test_numbers_are_declared_with_their_range(make_point, infos):
    points = [make_point(options={"o": value}) for value in (3, 1, 2)]
    interval = infos(hparams.columns(map(series_of, points)))["o"].domain_interval
    assert (interval.min_value, interval.max_value) == (1.0, 3.0)


def test_columns_in_which_points_differ_come_first(make_point, infos):
    points = [
        make_point(options={"same": 1, "swept": v, "some": s}) for v, s in ((1, 1), (2, None))
    ]
    found = infos(hparams.columns(map(series_of, points)))
    assert [found[name].differs for name in ("same", "swept", "some")] == [False, True, True]


def test_the_message_of_an_experiment_is_the_same_every_time(make_point):
    rows = hparams.columns([series_of(make_point(options={"b": 1, "a": 2}))])
    assert hparams.experiment("s", 1.0, rows, []) == hparams.experiment("s", 1.0, rows, [])


@pytest.mark.parametrize(
    ("passed", "status"),
    [(True, api_pb2.STATUS_SUCCESS), (False, api_pb2.STATUS_FAILURE)],
)
def test_the_end_of_a_row_says_whether_all_passed(passed, status):
    content = hparams.session_end(9.0, passed=passed)
    assert metadata.parse_session_end_info_plugin_data(content).status == status
