"""Flags of a series: where they are, that they stand, how seldom there is one without a change."""

import numpy as np
import pytest

from orbax_bench_core.analysis.history.changes import (
    FEWEST,
    LEAST,
    MOST,
    SEASON,
    flags,
    largest_cut,
    threshold,
)

NOISE = np.random.default_rng(7).normal(size=200)


def found(values, level=0.05):
    return [flag.cut for flag in flags(list(values), lambda cut, night: level)]


def test_a_step_is_found_where_it_is():
    assert found([*NOISE[:30], *(8 + NOISE[30:60])]) == [30]


def test_a_step_is_flagged_within_a_few_nights():
    (flag,) = flags([*NOISE[:30], *(8 + NOISE[30:60])], lambda cut, night: 0.05)
    assert flag.night <= 36
    assert flag.statistic > flag.threshold


def test_a_step_and_its_way_back_are_found():
    assert found([*NOISE[:20], *(8 + NOISE[20:40]), *NOISE[40:60]]) == [20, 40]


def test_one_wild_run_is_no_change():
    values = list(NOISE[:60])
    values[30] = 1e9
    assert found(values) == []


def test_a_series_that_does_not_change_at_all_has_no_change():
    assert found([1.0] * 50) == []


@pytest.mark.parametrize("length", [0, 1, FEWEST - 1])
def test_short_series_have_none(length):
    assert largest_cut([0.0] * (length // 2) + [100.0] * (length - length // 2)) == (0, 0.0)


@pytest.mark.parametrize("night", range(10, 90, 8))
def test_what_was_flagged_stays_flagged_whatever_comes_later(night):
    series = [*NOISE[:20], *(8 + NOISE[20:40]), *(2 + NOISE[40:90])]
    then, later = (
        [(f.cut, f.night) for f in flags(part, _five)] for part in (series[:night], series)
    )
    assert later[: len(then)] == then


def _five(cut, night):
    return 0.05


def test_where_it_cannot_be_confirmed_a_flag_needs_more():
    values = [*NOISE[:20], *(3 + NOISE[20:30])]
    assert len(flags(values, lambda cut, night: 0.05)) == 1
    assert flags(values, lambda cut, night: 0.0001) == []


@pytest.mark.parametrize("nights", [SEASON, SEASON + 1])
def test_thresholds_rise_as_the_level_falls_below_the_table_too(nights):
    levels = [MOST, 0.07, 0.05, 0.03, 0.01, LEAST, 0.0003, 1e-5]
    limits = [threshold(level, nights) for level in levels]
    assert limits == sorted(set(limits))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [pytest.param("normal", marks=pytest.mark.nightly), "t2"])
def test_without_a_change_few_series_are_ever_flagged_in_sixty_nights(noise):
    random, count = np.random.default_rng(3), 300
    shape = (count, 60)
    series = random.normal(size=shape) if noise == "normal" else random.standard_t(2, size=shape)
    # 5 % and two standard errors.
    assert sum(bool(found(values)) for values in series) <= 0.05 * count + 2 * np.sqrt(
        0.05 * 0.95 * count
    )
