"""Noise passports: look-ups, files, and what they forecast of a comparison."""

import datetime

import pytest

from orbax_bench_core.analysis.noise import Passport, find, forecast, load
from orbax_bench_core.analysis.noise.forecasts import expected, process_noise
from orbax_bench_core.analysis.noise.measure import from_records
from orbax_bench_core.analysis.noise.passport import Component, Noise, size_class
from orbax_bench_core.config import GateConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.provenance import host_provenance, storage_provenance
from orbax_bench_core.sweep import ProcessNoise
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


def test_the_one_that_is_named_must_exist(tmp_path):
    with pytest.raises(UserError, match="write one with `orbax-bench calibrate DIR --save "):
        find(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("suite_name: s", "not a noise passport of schema version 1: Invalid JSON"),
        ('{"schema_version": 2}', "written by a newer orbax-bench"),
    ],
)
def test_another_file_is_refused(tmp_path, content, said):
    (tmp_path / "other").write_text(content)
    with pytest.raises(UserError, match=said):
        load(str(tmp_path / "other"))


GATE = GateConfig()


@pytest.fixture
def expect(noisy_records):
    """Returns what to expect of a point whose saves have a known sigma."""

    def make(sigma):
        records = noisy_records(sigma)
        return expected(records[0].point, GATE, from_records(records))

    return make


def test_a_quiet_point_takes_what_its_limits_take(expect):
    found = expect(0.02)
    assert (found.operations, found.chance) == (pytest.approx(40, abs=0.1), 1.0)
    assert found.minutes == pytest.approx(2 * found.operations * 3 / 60)


@pytest.mark.slow
def test_noise_takes_longer_and_finds_less(expect):
    quiet, noisy = expect(0.02), expect(0.4)
    assert noisy.operations > 30
    assert noisy.chance < 0.9
    assert noisy.detectable > quiet.detectable


@pytest.mark.slow
def test_the_noisiest_primary_operation_decides(noisy_records):
    records = noisy_records(0.02)
    passport = from_records(records)
    noisy = passport.noise[0].model_copy(update={"operation": "load", "sigma": 0.4})
    both = passport.model_copy(update={"noise": (*passport.noise, noisy)})
    assert expected(records[0].point, GATE, both).operation == "load"


def test_of_what_is_not_known_nothing_is_expected(noisy_records, make_point):
    passport = from_records(noisy_records(0.1))
    assert expected(make_point(checkpoint=checkpoint(MIB)), GATE, passport) is None


@pytest.fixture
def here(noisy_records, tmp_path):
    """The records of a run as if it had been made on this machine, into `tmp_path`."""
    return noisy_records(
        0.02,
        storage=storage_provenance(str(tmp_path)),
        host=host_provenance()["host"],
    )


def test_a_forecast_is_for_all_points_together(here, tmp_path, make_point):
    point = here[0].point
    said = forecast([point, point], GATE, from_records(here), str(tmp_path))
    assert said.startswith("A verdict will probably take 40 operations per arm and point, 8 min")
    assert "100 % of such comparisons end in a verdict" in said


def test_a_forecast_of_cpu_times_says_that_the_passport_has_none(here, tmp_path):
    gate = GateConfig(primary=("save", "save:cpu"))
    said = forecast([here[0].point], gate, from_records(here), str(tmp_path))
    assert said.endswith("the noise passport is of times, and save:cpu decides here.")
    assert "calibrate" not in said


def test_arms_with_workers_of_their_own_take_the_looks_of_lives(noisy_records):
    records = noisy_records(0.02)
    gate = GateConfig(lives="always", limit_minutes=0)
    found = expected(records[0].point, gate, from_records(records))
    assert found.operations == 16


@pytest.mark.slow
def test_process_noise_that_is_known_is_counted(noisy_records):
    records, gate = noisy_records(0.05), GateConfig(lives="always")
    passport = from_records(records)
    tau = Component(estimate=0.1, low=0.05, high=0.2, p_value=0.0, workers=40, rounds=2)
    known = passport.noise[0].model_copy(update={"tau": tau})
    noisy = expected(records[0].point, gate, passport.model_copy(update={"noise": (known,)}))
    assert noisy.detectable > expected(records[0].point, gate, passport).detectable


def test_what_a_passport_knows_of_processes_is_the_worst_of_the_primary(noisy_records):
    records = noisy_records(0.05)
    passport = from_records(records)
    point = records[0].point
    assert process_noise(point, GATE, passport) == ProcessNoise()
    tau = Component(estimate=0.0, low=0.0, high=0.008, p_value=0.5, workers=40, rounds=2)
    ratio = tau.model_copy(update={"low": 0.02, "high": 0.1})
    save = passport.noise[0].model_copy(update={"tau": tau, "interaction": ratio})
    load = save.model_copy(update={"operation": "load", "tau": None})
    known = passport.model_copy(update={"noise": (save,)})
    assert process_noise(point, GATE, known) == ProcessNoise(
        offset_high=0.008, interaction_low=0.02
    )
    half = passport.model_copy(update={"noise": (save, load)})
    assert process_noise(point, GATE, half).offset_high is None
