"""Lines through blocked times."""

import pytest

from orbax_bench_core.analysis.async_study.model import SaveKind, Size
from orbax_bench_core.analysis.async_study.study import fit_of, line_through, ratio_of, seconds_of

MEGABYTES = 10**6
BYTES = [MEGABYTES, 30 * MEGABYTES, 1000 * MEGABYTES]


def exactly(times):
    return [seconds_of([seconds]) for seconds in times]


def sized(num_bytes, sync, background):
    def kind(seconds):
        times = seconds_of([seconds])
        return SaveKind(point_ids=("p",), failed=0, blocked=times, total=times)

    ratio = ratio_of([background], [sync])
    return Size(
        checkpoint="c",
        num_parameters=None,
        num_bytes=num_bytes,
        blocking=kind(sync),
        background=kind(background),
        saved=ratio.complement,
        overhead=ratio,
    )


def test_times_on_a_line_give_the_line():
    line = line_through(BYTES, exactly(0.1 + size / 1e8 for size in BYTES))
    assert line.fixed_s == pytest.approx(0.1)
    assert line.bytes_per_s == pytest.approx(1e8)
    assert line.worst == pytest.approx(0, abs=1e-9)


def test_small_sizes_count_as_much_as_large_ones():
    """A tenth more at every size is a tenth more of both parts."""
    line = line_through(BYTES, exactly(1.1 * (0.1 + size / 1e8) for size in BYTES))
    assert line.fixed_s == pytest.approx(0.11)


def test_times_that_fall_give_no_speed_rather_than_a_negative_one():
    line = line_through(BYTES, exactly([0.3, 0.2, 0.1]))
    assert (line.s_per_byte, line.bytes_per_s, line.flat) == (0, None, True)


def test_the_residual_is_relative():
    line = line_through([1, 1, 10**9, 10**9], exactly([0.9, 1.1, 0.9, 1.1]))
    assert line.worst == pytest.approx(0.1, rel=0.2)
    assert line.residual == pytest.approx(0.1, rel=0.05)


def test_the_limit_is_one_less_the_ratio_of_the_speeds():
    fit = fit_of([sized(size, 0.1 + size / 1e8, 0.05 + size / 1e9) for size in BYTES])
    assert fit.limit == pytest.approx(0.9)
    assert fit.holds


def test_medians_far_from_a_line_do_not_hold():
    assert not fit_of(
        [sized(size, 1.0, wild) for size, wild in zip(BYTES, [1, 9, 1], strict=True)]
    ).holds


def test_blocking_saves_that_do_not_grow_have_no_limit():
    fit = fit_of([sized(size, 1.0 / size, 0.1) for size in BYTES])
    assert (fit.limit, fit.holds) == (None, False)


def test_two_sizes_have_no_fit():
    sizes = [sized(size, 1.0, 0.5) for size in (BYTES[0], BYTES[0], BYTES[1])]
    assert fit_of(sizes) is None


@pytest.mark.parametrize(("half", "flat"), [(0.02, False), (0.2, True)])
def test_growth_within_the_noise_is_not_shown(half, flat):
    """Medians that grow by a tenth, within intervals of 2 % or 20 % to each side."""
    times = [
        seconds_of([median * (1 - half), median, median * (1 + half)]) for median in (1, 1.05, 1.1)
    ]
    assert line_through(BYTES, times).flat == flat
