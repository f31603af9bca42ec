"""Columns and rows of the HParams tab."""

import pytest
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.exports.tensorboard import cards
from tests.support.repeats import series_of


@pytest.fixture
def rows(make_point):
    """The rows of points with these options."""

    def make(*options, **fields):
        points = [make_point(options=one, **fields) for one in options]
        return list(cards.columns(map(series_of, points)).values())

    return make


@pytest.fixture
def infos():
    """What the tab is told of each column."""

    def parse(rows):
        content = HParamsPluginData(
            experiment=cards.experiment("a suite", 5.0, rows, {})
        ).SerializeToString()
        return {
            info.name: info for info in metadata.parse_experiment_plugin_data(content).hparam_infos
        }

    return parse


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *(([value], [value]) for value in (True, 3, 0.5, "text")),
        ([None, 3], [None, 3]),  # an empty cell
        ([[1, 2]], ["[1, 2]"]),
        (["auto", 3], ["auto", "3"]),  # a column has one type
        ([True, 1], ["true", "1"]),
        ([1, 0.5], [1, 0.5]),
    ],
)
def test_a_column_has_the_type_that_its_options_share(rows, values, expected):
    found = [row.get("option") for row in rows(*({"option": value} for value in values))]
    assert [(value, type(value)) for value in found] == [(each, type(each)) for each in expected]


def test_nested_options_are_flattened(rows):
    assert rows({"outer": {"inner": 3}})[0]["outer.inner"] == 3


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
    assert infos(cards.columns(map(series_of, points)))["o"].type == expected


def test_numbers_are_declared_with_their_range(make_point, infos):
    points = [make_point(options={"o": value}) for value in (3, 1, 2)]
    interval = infos(cards.columns(map(series_of, points)))["o"].domain_interval
    assert (interval.min_value, interval.max_value) == (1.0, 3.0)


def test_columns_in_which_points_differ_come_first(make_point, infos):
    points = [
        make_point(options={"same": 1, "swept": v, "some": s}) for v, s in ((1, 1), (2, None))
    ]
    found = infos(cards.columns(map(series_of, points)))
    assert [found[name].differs for name in ("same", "swept", "some")] == [False, True, True]
