"""From runs to series: what belongs together, what each value is, and what differs at a change."""

import datetime

import numpy as np
import pytest

from orbax_bench_core.analysis.history import changes
from orbax_bench_core.analysis.history.build import history
from orbax_bench_core.analysis.history.model import PastRun
from orbax_bench_core.analysis.history.view import remarks
from orbax_bench_core.analysis.history.words import question
from orbax_bench_core.baselines import find_runs
from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.records import ErrorInfo


@pytest.fixture
def series_of():
    """Returns the series of runs."""

    def build(runs):
        return history(find_runs([str(run.root) for run in runs])).series

    return build


@pytest.fixture
def arm(make_point):
    """Returns a pair: a reference in a pinned environment, and a candidate in another one."""

    def make(version, **options):
        def environment(name):
            requirement = f"orbax-checkpoint=={name}"
            return EnvironmentConfig(name=f"orbax-{name}", requirements=(requirement,))

        return make_point(
            environment=environment("0.11.32"),
            candidate=make_point(environment=environment(version), **options),
        )

    return make


def test_a_paired_run_gives_the_ratio_to_its_reference(series_of, make_nightly):
    (series,) = series_of(make_nightly([1.0, 1.2], sigma=0.001))
    assert series.kind == "ratio"
    assert [run.value for run in series.runs] == pytest.approx([1.0, 1.2], rel=0.005)
    assert [run.n for run in series.runs] == [5, 5]
    assert all(run.low <= run.value <= run.high for run in series.runs)


def test_a_slow_day_does_not_move_the_ratio(series_of, make_paired_run):
    runs = [make_paired_run(day, seconds=1.0 + day, sigma=0.001) for day in range(3)]
    (series,) = series_of(runs)
    assert [run.value for run in series.runs] == pytest.approx([1.0] * 3, rel=0.005)


def test_a_candidate_in_a_new_environment_goes_on_with_the_series(series_of, make_paired_run, arm):
    runs = [make_paired_run(day, pair=arm(f"0.12.{day}")) for day in range(3)]
    (series,) = series_of(runs)
    assert [run.ran["environment"] for run in series.runs] == [
        "orbax-0.12.0",
        "orbax-0.12.1",
        "orbax-0.12.2",
    ]


def test_another_option_or_another_reference_is_another_series(
    series_of, make_paired_run, make_point, arm
):
    pairs = [
        arm("0.12.8"),
        arm("0.12.8", options={"use_ocdbt": False}),
        make_point(candidate=arm("0.12.8").candidate),
    ]
    runs = [make_paired_run(day, pair=pair) for day, pair in enumerate(pairs)]
    assert len(series_of(runs)) == 3


def test_a_new_machine_is_remarked(series_of, make_paired_run):
    other = {"host": {"cpu": "Xeon", "cpu_count": 2}}
    runs = [make_paired_run(0), make_paired_run(1, provenance=other)]
    (series,) = series_of(runs)
    assert "The machine changed: CPU: EPYC → Xeon from run run001 on." in list(
        remarks([series], 18)
    )


@pytest.mark.slow
def test_separate_runs_give_seconds_without_changes_and_say_why(series_of, make_separate_run):
    runs = [make_separate_run(day, 1.0 if day < 10 else 9.0) for day in range(20)]
    (series,) = series_of(runs)
    assert (series.kind, series.changes) == ("seconds", ())
    assert series.runs[0].value == pytest.approx(1.0, rel=0.05)


def test_a_run_in_which_nothing_passed_is_passed_over(make_run, make_record):
    error = ErrorInfo(type="ValueError", message="no")
    run = make_run([make_record(status="failed", error=error)])
    found = history(find_runs([str(run.root)]))
    assert (found.series, found.passed_over) == ((), (str(run.root),))


def run(name, value=1.0, **ran):
    return PastRun(
        run_id=name,
        place=name,
        began_at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        value=value,
        low=value,
        high=value,
        n=5,
        ran={version.replace("_", "-"): number for version, number in ran.items()},
    )


def environment(*requirements):
    return EnvironmentConfig(name="nightly", requirements=requirements)


def asked(before, after, was=None, now=None, suite="suite.yaml"):
    return question(before, after, (was, now), suite)


BEFORE, AFTER = run("a", 1.0), run("b", 1.2)


def test_releases_of_one_package_are_searched():
    was = environment("orbax-checkpoint==0.12.7", "jax==0.10.2")
    now = environment("orbax-checkpoint==0.12.9", "jax==0.10.2")
    assert asked(BEFORE, AFTER, was, now) == (
        "orbax-bench bisect suite.yaml -o asked/a_b --package orbax-checkpoint --good 0.12.7 "
        "--bad 0.12.9 --with jax==0.10.2"
    )


def test_versions_of_the_records_do_where_there_is_no_environment():
    before = run("a", 1.0, orbax_checkpoint="0.12.7", jax="0.10.2", commit="abc")
    after = run("b", 1.2, orbax_checkpoint="0.12.8", jax="0.10.2", commit="def")
    assert "--package orbax-checkpoint --good 0.12.7 --bad 0.12.8" in asked(before, after)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (("orbax-checkpoint==0.12.8",), ("orbax-checkpoint==0.12.7",)),
        (("orbax-checkpoint==0.12.7", "jax==0.10.1"), ("orbax-checkpoint==0.12.8", "jax==0.10.2")),
        (("/wheels/a-1.whl",), ("/wheels/a-2.whl",)),
        (("a @ git+https://host/a@0123abc",), ("a @ git+https://host/a@4567def",)),
    ],
)
def test_any_other_two_sides_are_compared(was, now):
    command = asked(BEFORE, AFTER, environment(*was), environment(*now))
    assert command.startswith("orbax-bench ab suite.yaml -o asked/a_b --override 'environments=[")
    assert all(requirement in command for requirement in (*was, *now))


@pytest.mark.parametrize("environment", [None, EnvironmentConfig(name="x", interpreter="/py")])
def test_without_anything_to_install_there_is_no_command(environment):
    assert asked(BEFORE, AFTER, environment, environment) == ""


NOISE = np.random.default_rng(7).normal(size=200)


def found(values, level=0.05):
    return [flag.cut for flag in changes.flags(list(values), lambda cut, night: level)]


def test_a_step_is_flagged_within_a_few_nights_where_it_is():
    (flag,) = changes.flags([*NOISE[:30], *(8 + NOISE[30:60])], lambda cut, night: 0.05)
    assert flag.cut == 30
    assert flag.night <= 36
    assert flag.statistic > flag.threshold


def test_a_step_and_its_way_back_are_found():
    assert found([*NOISE[:20], *(8 + NOISE[20:40]), *NOISE[40:60]]) == [20, 40]


def test_one_wild_run_is_no_change():
    values = list(NOISE[:60])
    values[30] = 1e9
    assert found(values) == []


@pytest.mark.parametrize("night", range(10, 90, 8))
def test_what_was_flagged_stays_flagged_whatever_comes_later(night):
    series = [*NOISE[:20], *(8 + NOISE[20:40]), *(2 + NOISE[40:90])]
    then, later = (
        [(f.cut, f.night) for f in changes.flags(part, _five)] for part in (series[:night], series)
    )
    assert later[: len(then)] == then


def test_nights_that_depend_on_each_other_are_seldom_flagged():
    rng = np.random.default_rng(0)
    years = []
    for _ in range(20):
        shocks = rng.normal(size=changes.YEAR)
        offsets = np.zeros(changes.YEAR)
        for night in range(1, changes.YEAR):
            offsets[night] = 0.8 * offsets[night - 1] + 0.6 * shocks[night]
        years.append(len(found(offsets)))
    assert sum(years) < 2 * len(years)


def _five(cut, night):
    return 0.05


def test_where_it_cannot_be_confirmed_a_flag_needs_more():
    values = [*NOISE[:20], *(3 + NOISE[20:30])]
    assert len(changes.flags(values, lambda cut, night: 0.05)) == 1
    assert changes.flags(values, lambda cut, night: 0.0001) == []


@pytest.mark.parametrize("nights", [changes.SEASON, changes.SEASON + 1])
def test_thresholds_rise_as_the_level_falls_below_the_table_too(nights):
    levels = [changes.MOST, 0.07, 0.05, 0.03, 0.01, changes.LEAST, 0.0003, 1e-5]
    limits = [changes.threshold(level, nights) for level in levels]
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
