"""Noise in records, and variance between worker processes."""

import datetime
import math

import numpy as np
import pytest

from orbax_bench_core.analysis.noise import calibration, calibration_document, measure, passport
from orbax_bench_core.baselines import find_runs
from orbax_bench_core.config import BLOCK_SIZE, GateConfig
from orbax_bench_core.sweep import Pair, PairDesign, arrangement
from tests.analysis.noise.conftest import MIB
from tests.support.paired_runs import MONDAY, make_paired_run, make_separate_run  # noqa: F401 - fixtures
from tests.support.shown import assert_told, terminal


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def workers(rng, tau, sigma=0.05, waves=12, count=4, rounds=2, wild=False):
    """Log times of workers that differ by tau, on a machine that drifts."""
    table = sigma * rng.standard_normal((waves, count, rounds))
    table += tau * rng.standard_normal((waves, count, 1))
    table += 0.3 * rng.standard_normal((waves, 1, 1)) + 0.1 * rng.standard_normal(
        (waves, 1, rounds)
    )
    if wild:
        table[rng.random(table.shape) < 0.03] += 1.5
    return table


def test_an_offset_of_workers_is_found_with_its_size(rng):
    found = measure.between_workers(workers(rng, 0.1, waves=60))
    assert found.low < 0.1 < found.high
    assert found.estimate == pytest.approx(0.1, rel=0.15)
    assert found.p_value < 1e-6
    assert (found.workers, found.rounds) == (240, 2)


def test_workers_that_are_the_same_have_a_lower_end_of_zero(rng):
    found = measure.between_workers(workers(rng, 0.0, waves=40))
    assert found.low == 0.0
    assert 0 < found.high < 0.05


def test_a_drift_of_the_machine_is_no_difference_of_workers(rng):
    table = workers(rng, 0.0, waves=40) + np.linspace(0, 2, 40)[:, None, None]
    assert measure.between_workers(table).high < 0.05


def test_stalls_belong_to_no_worker(rng):
    assert measure.between_workers(workers(rng, 0.0, waves=40, wild=True)).estimate < 0.04


@pytest.mark.parametrize("shape", [(5, 1, 4), (5, 4, 1), (0, 4, 2)])
def test_too_few_workers_or_rounds_say_nothing(shape):
    assert measure.between_workers(np.zeros(shape)) is None


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("waves", [4, 15])
def test_intervals_hold_the_truth_as_often_as_they_say(rng, tau, waves):
    found = [measure.between_workers(workers(rng, tau, waves=waves)) for _ in range(400)]
    assert sum(each.low <= tau <= each.high for each in found) >= 0.93 * 400
    if not tau:
        assert sum(each.low > 0 for each in found) <= 0.045 * 400


@pytest.mark.parametrize("pair", [True, False])
def test_noise_is_found_again(noisy_records, pair):
    (noise,) = measure.from_records(noisy_records(0.1, pair=pair)).noise
    assert noise.sigma == pytest.approx(0.1, rel=0.15)
    assert (noise.operation, noise.storage, noise.cpu, noise.n) == ("save", "ext4", "EPYC", 400)


@pytest.mark.parametrize("pair", [True, False])
def test_a_drift_is_no_noise(noisy_records, pair):
    (noise,) = measure.from_records(noisy_records(0.02, pair=pair, drift=3.0)).noise
    assert noise.sigma == pytest.approx(0.02, rel=0.25)


def test_a_repeat_takes_until_the_next_one_begins(noisy_records):
    (noise,) = measure.from_records(noisy_records(0.1, n=40)).noise
    assert noise.repeat_s == 3.0


def test_the_noise_of_several_runs_is_the_middle_one(noisy_records):
    runs = [noisy_records(sigma, run=run) for run, sigma in enumerate((0.01, 0.05, 0.9))]
    (noise,) = measure.from_records(record for run in runs for record in run).noise
    assert noise.sigma == pytest.approx(0.05, rel=0.15)
    assert (noise.series, noise.n) == (3, 1200)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("storage", {"storage": {"type": "gs"}}),
        ("cpu", {"host": {"cpu": "Xeon"}}),
        ("device", {"devices": {"kind": "TPU v5e"}}),
        ("size", {"size": 256 * MIB}),
    ],
)
def test_storage_machine_and_size_are_told_apart(noisy_records, field, other):
    records = [*noisy_records(0.1, n=40), *noisy_records(0.1, run=1, n=40, **other)]
    assert len({getattr(noise, field) for noise in measure.from_records(records).noise}) == 2


def test_sizes_within_a_factor_of_four_are_one_class(noisy_records):
    records = [
        record
        for run, size in enumerate((64 * MIB, 200 * MIB, 256 * MIB - 1))
        for record in noisy_records(0.1, run=run, n=40, size=size)
    ]
    (noise,) = measure.from_records(records).noise
    assert noise.size == 64 * MIB


def test_failed_repeats_and_warmups_are_no_noise(noisy_records, make_record):
    good = noisy_records(0.02, pair=False)
    bad = [
        make_record(good[0].point, 1000 + index, times={"save": 100.0}, run_id="run0", **fields)
        for index, fields in enumerate([{"warmup": True}, {"status": "failed"}])
    ]
    assert measure.from_records([*good, *bad]).noise[0].n == len(good)


def test_workers_that_had_both_options_give_their_interaction(make_point, make_record):
    random = np.random.default_rng(4)
    pair = Pair(baseline=make_point(), candidate=make_point(options={"a": 1}))
    records = []
    for run in range(12):
        offset = 0.1 * random.standard_normal()
        for repeat in range(40):
            block, slot = divmod(repeat, BLOCK_SIZE)
            arm = arrangement(f"run{run}", pair.id, block)[slot]
            logs = 0.02 * random.standard_normal() + (0.5 + offset) * (arm == "candidate")
            times = {"save": math.exp(logs)}
            records.append(
                make_record(pair, repeat, times=times, run_id=f"run{run}", arm=arm, block=block)
            )
    (noise,) = measure.from_records(records).noise
    assert noise.interaction.low < 0.1 < noise.interaction.high
    assert (noise.interaction.workers, noise.tau) == (12, None)


def test_one_run_says_nothing_of_workers(noisy_records):
    (noise,) = measure.from_records(noisy_records(0.1, ratio=2.0)).noise
    assert (noise.tau, noise.interaction) == (None, None)


def test_lives_of_arms_that_differ_are_a_wave_for_each():
    labels = np.array([[True, False, False, True]])
    times = np.exp(np.array([[[9.0, 9.1], [1.0, 1.1], [2.0, 2.1], [8.0, 8.1]]]))
    waves = measure.waves_of_lives(times, labels, same=False)
    expected = [[[1.0, 1.1], [2.0, 2.1]], [[9.0, 9.1], [8.0, 8.1]]]
    assert waves == pytest.approx(np.array(expected))


def test_a_life_that_failed_leaves_its_wave_out():
    times = np.ones((2, 4, 2))
    times[0, 1, 1] = math.inf
    assert measure.waves_of_lives(times, np.zeros((2, 4), dtype=bool), same=True).shape == (1, 4, 2)


@pytest.fixture
def tests_of():
    """Returns the A/A tests of a run directory."""

    def make(run):
        (found,) = find_runs([str(run.root)])
        return calibration.aa_tests(found, found.read())

    return make


def test_a_false_alarm_is_counted(tests_of, make_paired_run):
    (test,) = tests_of(make_paired_run(0, 2.0, blocks=10))
    assert test.word == "REGRESSION"


def test_at_no_tolerance_a_small_offset_is_seen(tests_of, make_paired_run):
    # The gate passes 2 %, as it should; an A/A test that does so too would be blind.
    (test,) = tests_of(make_paired_run(0, 1.02, blocks=20, sigma=0.005))
    assert (test.word, test.differs) == ("PASS", True)
    (faster,) = tests_of(make_paired_run(1, 0.98, blocks=20, sigma=0.005))
    assert faster.differs


def test_at_no_tolerance_the_same_arms_are_the_same(tests_of, make_paired_run):
    tests = [tests_of(make_paired_run(day))[0] for day in range(4)]
    assert not any(test.differs for test in tests)


@pytest.mark.parametrize(("family", "count"), [("point", 2), ("suite", 1)])
def test_points_that_share_alpha_are_one_test(make_paired_run, make_point, tests_of, family, count):
    points = [make_point(options={"a": a}) for a in (1, 2)]
    pairs = tuple(Pair(baseline=one, candidate=one) for one in points)
    run, *_ = [make_paired_run(0, pair=pair, folder="one") for pair in pairs]
    info = run.read_info()
    changed = {
        "gate": GateConfig(family=family, looks=(10,)),
        "expansion": info.expansion.model_copy(update={"points": pairs}),
        "designs": dict.fromkeys((pair.id for pair in pairs), PairDesign()),
    }
    run.write_info(info.model_copy(update=changed))
    assert len(tests_of(run)) == count


def aa(word="PASS", alpha=0.01):
    return calibration.AaTest(
        run_id="run",
        place="/aa/[red]",
        point="p[a=1]",
        word=word,
        alpha=alpha,
        bound=alpha,
        operations=20,
        ratio=1.0,
    )


NOISE = passport.Noise(
    operation="save",
    storage="ext4",
    cpu="EPYC",
    device="cpu",
    size=2**26,
    n=60,
    series=1,
    sigma=0.03,
    repeat_s=3.0,
    points=(),
)


def calibrated(*tests):
    made = passport.Passport(made_at=datetime.datetime.now(datetime.UTC), noise=(NOISE,))
    return calibration.Calibration(tests=tests, passport=made)


def test_a_rate_as_promised_is_told():
    document = calibration_document(calibrated(*[aa()] * 99, aa("REGRESSION")), ["aa"], saved=False)
    assert_told(document)
    said = "1 of 100 A/A tests (1.0 %) said REGRESSION where 1.0 % may: nothing speaks against that"
    assert document.headline.said.startswith(said)
    assert document.headline.said.endswith("; operations vary by 3 %.")
    text = terminal(document, details=True, width=200)
    assert "REGRESSION in run run, p[a=1]: /aa/[red]" in text
    assert "99 PASS, 1 REGRESSION; at most 20 operations per arm" in text


def test_too_many_false_alarms_are_told():
    document = calibration_document(calibrated(*[aa("REGRESSION")] * 5))
    assert_told(document)
    assert document.headline.word == "TOO MANY FALSE ALARMS"


def test_runs_with_other_levels_are_counted_apart():
    text = terminal(calibration_document(calibrated(aa(alpha=0.05), aa(alpha=0.01))), details=True)
    assert "where 1.0 % may" in text
    assert "where 5.0 % may" in text
