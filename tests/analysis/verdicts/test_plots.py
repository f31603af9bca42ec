"""Drawings of verdicts."""

import math

import pytest

from orbax_bench_core.analysis.verdicts import plots
from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.document import figures


@pytest.fixture
def axes():
    with figures.style():
        yield figures.new_figure(5, 3).subplots()


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_limits_hold_all_values_and_the_margin():
    low, high = plots.ratio_limits([0.8, 1.1], 0.15)
    assert low < 0.8
    assert high > 1.15


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.0, -1.0])
def test_limits_leave_out_what_has_no_place(value):
    assert plots.ratio_limits([value], 0.15) == plots.ratio_limits([], 0.15)


def test_limits_end_somewhere():
    assert plots.ratio_limits([1e-9, 1e9], 0.15) == (1 / plots.WIDEST, plots.WIDEST)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.85, 1.18, ["0.9x", "1x", "1.1x"]),
        (0.97, 1.02, ["0.97x", "0.98x", "0.99x", "1x", "1.01x", "1.02x"]),
        (0.3, 5, ["0.5x", "1x", "2x", "4x"]),
    ],
)
def test_ticks_are_few_and_round(axes, low, high, ticks):
    axes.set_xscale("log")
    plots.ratio_axis(axes.xaxis, low, high)
    axes.set_xlim(low, high)
    assert [label.get_text() for label in axes.get_xticklabels()] == ticks


def test_an_interval_is_drawn_from_end_to_end(axes, make_operation, make_verdicts):
    found = make_operation("save", "REGRESSION", 1.2)
    plots.draw_intervals(axes, make_verdicts("p", found), GateConfig())
    bar = next(line for line in axes.get_lines() if line.get_color() == figures.REGRESSION)
    assert tuple(bar.get_xdata()) == (found.verdict.low, found.verdict.high)


def test_intervals_name_all_operations_primary_ones_on_top(axes, make_operation, make_verdicts):
    other = make_operation("x", "REGRESSION", primary=False)
    plots.draw_intervals(axes, make_verdicts("p", other, make_operation("save")), GateConfig())
    assert [label.get_text() for label in axes.get_yticklabels()] == ["save ✓", "(x) ✗"]
    assert axes.yaxis_inverted()


def test_each_row_is_shaded_by_its_own_rule(axes, make_operation, make_verdicts):
    gate = GateConfig(metrics={"load": {"tolerance": 0.1, "margin": 0.4}})
    point = make_verdicts("p", make_operation("save"), make_operation("load"))
    plots.draw_intervals(axes, point, gate)
    starts = [zone.get_paths()[0].vertices[:, 0].min() for zone in axes.collections[:6]]
    assert starts == pytest.approx([1 / plots.WIDEST, 1.03, 1.15, 1 / plots.WIDEST, 1.1, 1.4])


@pytest.mark.slow
def test_what_was_not_judged_is_said(axes, make_operation, make_verdicts):
    point = make_verdicts("p", make_operation("save", "INCONCLUSIVE", None))
    plots.draw_intervals(axes, point, GateConfig())
    assert [text.get_text().strip() for text in axes.texts] == ["not judged"]


def test_an_end_beyond_the_axis_is_an_arrow(axes, make_operation, make_verdicts):
    found = make_operation(verdict={"low": 0.9, "high": math.inf})
    plots.draw_intervals(axes, make_verdicts("p", found), GateConfig())
    assert [line.get_marker() for line in axes.get_lines()].count(">") == 1


def test_blocks_are_dots_in_the_order_measured(axes, make_operation):
    found = make_operation(block_log_ratios=(0.1, math.nan, -0.1))
    plots.draw_blocks(axes, found, GateRule())
    dots = lines(axes)["block"]
    assert list(dots.get_xdata()) == [1, 3]
    assert list(dots.get_ydata()) == pytest.approx([math.exp(0.1), math.exp(-0.1)])


def test_blocks_have_the_estimate_the_tolerance_and_the_margin(axes, make_operation):
    plots.draw_blocks(axes, make_operation(ratio=1.07), GateRule(tolerance=0.02, margin=0.2))
    heights = {label: line.get_ydata()[0] for label, line in lines(axes).items()}
    assert heights["estimate"] == 1.07
    assert heights["tolerance 2 %"] == 1.02
    assert heights["margin 20 %"] == 1.2


def test_series_have_both_arms_in_the_order_measured(axes, make_operation, make_verdicts):
    found = make_operation(times={"baseline": (0.1, 0.2), "candidate": (0.3, 0.25)})
    plots.draw_series(axes, make_verdicts("p", found), found)
    assert axes.get_ylabel() == "ms"
    assert list(lines(axes)["baseline"].get_ydata()) == pytest.approx([100, 200])
    assert list(lines(axes)["candidate"].get_ydata()) == pytest.approx([300, 250])


def test_series_of_one_arm_are_drawn(axes, make_operation, make_verdicts):
    found = make_operation(times={"baseline": (2.0,)})
    plots.draw_series(axes, make_verdicts("p", found), found)
    assert "candidate" not in lines(axes)
    assert axes.get_ylabel() == "s"


@pytest.mark.parametrize(
    ("first", "places"), [((), [2, 4, 6, 8, 10]), ((math.nan,), [3, 5, 7, 9, 11])]
)
def test_the_slow_one_of_two_regimes_is_hollow_and_what_is_no_number_moves_no_mark(
    axes, make_operation, make_verdicts, first, places
):
    from orbax_bench_core.gate.health import health

    times = (*first, 1.0, 1.4, 1.01, 1.41, 1.02, 1.42, 1.0, 1.4, 1.01, 1.41)
    found = make_operation(health={"baseline": health(times)}, times={"baseline": times})
    plots.draw_series(axes, make_verdicts("p", found), found)
    hollow = [line for line in axes.get_lines() if line.get_color() == figures.PAGE]
    assert [list(line.get_xdata()) for line in hollow] == [places]


def marks(axes, marker):
    """Where marks of a kind stand on the axis of places, by their label."""
    return {
        str(line.get_label()): list(line.get_xdata())
        for line in axes.get_lines()
        if line.get_marker() == marker
    }


@pytest.fixture
def looked(make_operation):
    """An operation of which the third of the candidate stalled."""
    from orbax_bench_core.gate import StallVerdict

    found = StallVerdict(
        word="PASS",
        candidate=1,
        baseline=0,
        operations=4,
        p_value=0.5,
        bound=0.7,
        threshold=1.5,
        look=0,
    )
    times = {"baseline": (1.0, 1.1, 1.0, 1.1), "candidate": (1.0, 1.1, 4.0)}
    return make_operation(times=times, verdict={"stalls": found})


def test_stalls_have_rings_and_failed_attempts_crosses(axes, looked, make_verdicts):
    plots.draw_series(axes, make_verdicts("p", looked, failed_at={"candidate": (1,)}), looked)
    assert marks(axes, "x") == {"_candidate_failed": [2], "failed": []}
    rings = {label: places for label, places in marks(axes, "o").items() if "stalled" in label}
    assert rings == {"_candidate_stalled": [4], "stalled": []}
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["baseline", "candidate", "stalled", "failed"]
    assert list(lines(axes)["candidate"].get_xdata()) == [1, 3, 4]


def test_times_that_nobody_looked_at_for_stalls_have_no_rings(axes, make_operation, make_verdicts):
    found = make_operation(times={"baseline": (1.0, 1.0, 9.0)})
    plots.draw_series(axes, make_verdicts("p", found), found)
    assert not any("stalled" in label for label in lines(axes))


def test_a_line_joins_the_operations_of_a_life(axes, make_operation, make_verdicts):
    from orbax_bench_core.sweep import PairDesign

    found = make_operation(times={"baseline": tuple(map(float, range(1, 9)))})
    design = PairDesign(workers="lives", operations_per_life=2)
    plots.draw_series(axes, make_verdicts("p", found, design=design), found)
    joined = [list(line.get_xdata()) for line in axes.get_lines() if line.get_linewidth() == 0.8]
    assert joined == [[1, 3], [2, 4], [5, 7], [6, 8]]


def test_a_floor_in_seconds_moves_the_bounds_of_the_blocks(axes, make_operation):
    found = make_operation(times={"baseline": (0.01, 0.01), "candidate": (0.01, 0.01)})
    plots.draw_blocks(axes, found, GateRule(min_effect_s=0.002))
    heights = {label: line.get_ydata()[0] for label, line in lines(axes).items()}
    assert heights["tolerance 2 ms"] == pytest.approx(1.2)
    assert heights["margin 2 ms"] == pytest.approx(1.2)
