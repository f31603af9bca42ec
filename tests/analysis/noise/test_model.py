"""Looking up the noise of a point that was measured, or of the nearest that was."""

import datetime

import pytest

from orbax_bench_core.analysis.noise import Passport
from orbax_bench_core.analysis.noise.passport import Noise, size_class
from tests.analysis.noise.conftest import MIB, checkpoint


@pytest.fixture
def passport():
    """Makes a passport of entries."""

    def make(*entries):
        defaults = {
            "operation": "save",
            "storage": "ext4",
            "cpu": "EPYC",
            "device": "cpu",
            "size": 64 * MIB,
            "n": 100,
            "series": 1,
            "repeat_s": 2.0,
            "points": (),
        }
        return Passport(
            made_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            noise=tuple(Noise(**{**defaults, **entry}) for entry in entries),
        )

    return make


@pytest.mark.parametrize(
    ("num_bytes", "size"), [(0, 0), (1, 1), (3, 1), (4, 4), (15, 4), (16, 16), (2**30, 2**30)]
)
def test_classes_begin_at_powers_of_four(num_bytes, size):
    assert size_class(num_bytes) == size


@pytest.mark.parametrize(
    ("num_bytes", "sigma"),
    [(64 * MIB, 0.1), (255 * MIB, 0.1), (20 * MIB, 0.1), (300 * MIB, 0.1), (MIB, None)],
)
def test_a_point_is_found_by_its_size_or_that_of_the_next_class(
    passport, make_point, num_bytes, sigma
):
    point = make_point(checkpoint=checkpoint(num_bytes))
    found = passport({"sigma": 0.1}).entry(point, "save")
    assert (found and found.sigma) == sigma


def test_the_same_size_is_nearer_than_the_next(passport, make_point):
    point = make_point(checkpoint=checkpoint(64 * MIB))
    entries = [{"sigma": 0.1, "size": 16 * MIB}, {"sigma": 0.2}, {"sigma": 0.3, "size": 256 * MIB}]
    assert passport(*entries).entry(point, "save").sigma == 0.2


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_a_point_or_an_arm_that_was_measured_is_nearest_of_all(passport, make_point, arm):
    pair = make_point(candidate=make_point(options={"a": 1}))
    known = {"sigma": 0.1, "size": 4, "points": (pair.arm(arm).id,)}
    assert passport(known, {"sigma": 0.2}).entry(pair, "save").sigma == 0.1


def test_a_point_of_unknown_size_is_known_only_when_it_was_measured(passport, make_point):
    assert passport({"sigma": 0.1}).entry(make_point(), "save") is None


@pytest.mark.parametrize(
    ("asked", "sigma"),
    [
        ({}, 0.1),
        ({"storage": "ext4"}, 0.1),
        ({"storage": "gs"}, None),
        ({"cpu": "Xeon"}, None),
        ({"storage": "ext4", "cpu": "EPYC"}, 0.1),
    ],
)
def test_other_storage_and_other_machines_say_nothing(passport, make_point, asked, sigma):
    point = make_point(checkpoint=checkpoint(64 * MIB))
    found = passport({"sigma": 0.1}).entry(point, "save", **asked)
    assert (found and found.sigma) == sigma


def test_another_operation_says_nothing(passport, make_point):
    point = make_point(checkpoint=checkpoint(64 * MIB))
    assert passport({"sigma": 0.1}).entry(point, "load") is None
