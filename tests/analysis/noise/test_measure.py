"""From records to noise: what counts as noise, and what does not."""

import pytest

from orbax_bench_core.analysis.noise import from_records
from tests.analysis.noise.conftest import MIB


@pytest.mark.parametrize("pair", [True, False])
def test_noise_is_found_again(noisy_records, pair):
    (noise,) = from_records(noisy_records(0.1, pair=pair)).noise
    assert noise.sigma == pytest.approx(0.1, rel=0.15)
    assert (noise.operation, noise.storage, noise.cpu, noise.n) == ("save", "ext4", "EPYC", 400)


@pytest.mark.parametrize("pair", [True, False])
def test_a_drift_is_no_noise(noisy_records, pair):
    (noise,) = from_records(noisy_records(0.02, pair=pair, drift=3.0)).noise
    assert noise.sigma == pytest.approx(0.02, rel=0.25)


def test_a_difference_between_the_arms_is_no_noise(noisy_records):
    (noise,) = from_records(noisy_records(0.02, ratio=5.0)).noise
    assert noise.sigma == pytest.approx(0.02, rel=0.25)


def test_a_repeat_takes_until_the_next_one_begins(noisy_records):
    (noise,) = from_records(noisy_records(0.1, n=40)).noise
    assert noise.repeat_s == 3.0


def test_the_noise_of_several_runs_is_the_middle_one(noisy_records):
    runs = [noisy_records(sigma, run=run) for run, sigma in enumerate((0.01, 0.05, 0.9))]
    (noise,) = from_records(record for run in runs for record in run).noise
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
    assert len({getattr(noise, field) for noise in from_records(records).noise}) == 2


def test_sizes_within_a_factor_of_four_are_one_class(noisy_records):
    records = [
        record
        for run, size in enumerate((64 * MIB, 200 * MIB, 256 * MIB - 1))
        for record in noisy_records(0.1, run=run, n=40, size=size)
    ]
    (noise,) = from_records(records).noise
    assert noise.size == 64 * MIB


def test_too_few_operations_say_nothing(noisy_records):
    assert from_records(noisy_records(0.1, n=3, pair=False)).noise == ()


def test_failed_repeats_and_warmups_are_no_noise(noisy_records, make_record):
    good = noisy_records(0.02, pair=False)
    bad = [
        make_record(good[0].point, 1000 + index, times={"save": 100.0}, run_id="run0", **fields)
        for index, fields in enumerate([{"warmup": True}, {"status": "failed"}])
    ]
    assert from_records([*good, *bad]).noise[0].n == len(good)
