"""Noise passports: look-ups and files."""

import datetime

import pytest

from orbax_bench_core.analysis.noise import Passport, find, load, save
from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import Noise, default_path, size_class
from orbax_bench_core.errors import UserError
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


@pytest.fixture
def kept(noisy_records):
    """A passport with one entry."""
    return from_records(noisy_records(0.1, n=40))


def test_what_is_saved_is_loaded(kept, tmp_path):
    save(kept, str(tmp_path / "new" / "passport.json"))
    assert load(str(tmp_path / "new" / "passport.json")) == kept


def test_the_users_own_is_found_where_it_exists(kept, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find(None) is None
    save(kept, str(default_path()))
    assert find(None) == kept


def test_the_one_that_is_named_must_exist(tmp_path):
    with pytest.raises(UserError, match="write one with `orbax-bench calibrate DIR --save "):
        find(str(tmp_path / "none.json"))


def test_a_file_of_another_kind_is_told_without_a_key(tmp_path):
    (tmp_path / "suite.yaml").write_text("suite_name: s")
    with pytest.raises(UserError, match="not a noise passport of schema version 1: Invalid JSON"):
        load(str(tmp_path / "suite.yaml"))


def test_another_file_is_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"schema_version": 2}')
    with pytest.raises(UserError, match="not a noise passport of schema version 1"):
        load(str(tmp_path / "other.json"))
