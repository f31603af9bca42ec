"""Which worker processes the operations of a pair have."""

import itertools

import pytest

from orbax_bench_core.config import EnvironmentConfig, GateConfig, MeshConfig
from orbax_bench_core.sweep import Pair, PairDesign, ProcessNoise, design_of

OLD = EnvironmentConfig(name="old", interpreter="p")
MESH = MeshConfig(mesh_axes=("d",), ici_parallelism={"d": 4})
LIVES = PairDesign(workers="lives", operations_per_life=2)


@pytest.fixture
def pair_with(make_point):
    point = make_point()
    return lambda **changes: Pair(baseline=point, candidate=point.replace(**changes))


def test_arms_that_differ_in_options_share_a_worker(pair_with):
    assert design_of(pair_with(options={"use_ocdbt": False}), GateConfig()).workers == "shared"


@pytest.mark.parametrize("changes", [{"environment": OLD}, {"mesh": MESH}, {"processes": 2}])
def test_arms_that_cannot_share_a_worker_have_lives(pair_with, changes):
    assert design_of(pair_with(**changes), GateConfig()) == LIVES


def test_lives_can_be_forced_and_are_as_long_as_the_suite_says(pair_with):
    gate = GateConfig(lives="always", operations_per_life=4)
    assert design_of(pair_with(), gate) == PairDesign(workers="lives", operations_per_life=4)


@pytest.mark.parametrize(
    ("known", "workers"),
    [
        (ProcessNoise(), "shared"),
        (ProcessNoise(interaction_low=0.0), "shared"),
        (ProcessNoise(interaction_low=0.02), "lives"),
    ],
)
def test_options_that_interact_with_the_process_take_lives(pair_with, known, workers):
    assert design_of(pair_with(), GateConfig(), passport=known).workers == workers


@pytest.mark.parametrize(
    ("known", "workers"),
    [
        (ProcessNoise(), "lives"),
        (ProcessNoise(offset_high=0.02), "lives"),
        (ProcessNoise(offset_high=0.01), "one_per_arm"),
    ],
)
def test_environments_stay_in_one_process_each_where_offsets_are_small(pair_with, known, workers):
    pair = pair_with(environment=OLD)
    assert design_of(pair, GateConfig(), passport=known).workers == workers


def test_what_is_forced_is_not_asked_of_a_passport(pair_with):
    gate = GateConfig(lives="always")
    assert design_of(pair_with(), gate, passport=ProcessNoise(offset_high=0.001)).lives


@pytest.mark.parametrize("design", [PairDesign(), LIVES])
def test_every_repeat_has_a_place_of_its_own(design):
    places = [
        (block, slot, operation)
        for block, slot, operation in itertools.product(
            range(3), range(4), range(design.operations_per_life)
        )
    ]
    repeats = [design.repeat(*place) for place in places]
    assert repeats == list(range(3 * design.block_size))
    assert [design.place(repeat) for repeat in repeats] == places


def test_looks_are_whole_blocks():
    assert PairDesign().looks(GateConfig()) == (10, 20, 40, 60)
    assert LIVES.looks(GateConfig()) == (16, 24, 40, 60)
    assert LIVES.last_look(GateConfig()) == 100
    assert [LIVES.blocks(look) for look in LIVES.looks(GateConfig())] == [4, 6, 10, 15]
    assert PairDesign().blocks(10) == 5
    assert LIVES.operations(LIVES.block_size) == 4


def test_only_a_life_has_several_operations():
    with pytest.raises(ValueError, match="only a life has several operations"):
        PairDesign(workers="shared", operations_per_life=2)
