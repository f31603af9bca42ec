"""Points are ranked by their medians, and paired by round to say which tie."""

import math

import numpy as np
import pytest

from orbax_bench_core.analysis.best import best, parse_goal, rank, separation
from orbax_bench_core.analysis.best.observations import goal_value
from orbax_bench_core.config import ExecutionConfig
from orbax_bench_core.errors import UserError

ROUNDS = 8


def made(ratios, *, rounds=ROUNDS, cv=0.02, drift=0.5, seed=3):
    rng = np.random.default_rng(seed)
    slow = rng.lognormal(0, drift, rounds)
    return {
        name: {at: ratio * slow[at] * float(rng.lognormal(0, cv)) for at in range(rounds)}
        for name, ratio in ratios.items()
    }


def ranked(values, per_process=1):
    rounds = {at for of in values.values() for at in of}
    return rank(values, {at: at // per_process for at in rounds})


def by_name(values, per_process=1):
    return {each.point_id: each for each in ranked(values, per_process)}


def test_drift_of_the_machine_cancels():
    found = by_name(made({"a": 1.0, "b": 1.2}))
    assert found["b"].tied is False
    assert found["b"].low < 1.2 < found["b"].high
    assert found["b"].high / found["b"].low < 1.15


def test_less_than_one_percent_is_a_tie_however_sure():
    found = by_name(made({"a": 1.0, "b": 1.005, "c": 1.05}, cv=0.0005))
    assert (found["b"].tied, found["c"].tied) == (True, False)


@pytest.mark.parametrize(("rounds", "per_process"), [(1, 1), (2, 1), (8, 4), (20, 20)])
def test_fewer_than_three_processes_tell_no_ties(rounds, per_process):
    found = ranked(made({"a": 1.0, "b": 2.0}, rounds=rounds), per_process)
    assert [each.tied for each in found] == [None, None]
    assert (found[1].low, found[1].high) == (None, None)


def test_points_without_a_common_round_are_unknown():
    found = by_name({"a": {0: 1.0, 1: 1.0}, "b": {2: 2.0, 3: 2.0}})
    assert (found["b"].ratio, found["b"].tied) == (None, None)


def test_a_point_that_lacks_rounds_is_compared_in_those_that_it_has():
    values = made({"a": 1.0, "b": 1.5})
    del values["b"][0], values["b"][5]
    found = by_name(values)
    assert found["b"].rounds == ROUNDS - 2
    assert found["b"].low < 1.5 < found["b"].high


def test_many_points_are_corrected_for():
    # One of 40 equal points that looks 2 standard errors slower is no news.
    found = ranked(made({f"{number:02d}": 1.0 for number in range(40)}, cv=0.1, rounds=10))
    assert all(each.tied for each in found)


def logs(means, rounds, cv=0.05):
    noise = np.random.default_rng(1).normal(0, cv, (rounds, len(means)))
    return np.array(means) + noise - noise.mean(axis=0) + np.linspace(0, 1, rounds)[:, None]


def confidence(logs, chosen=0):
    return separation(logs, chosen, rounds=len(logs), execution=ExecutionConfig())


def test_the_rounds_that_are_missing_bring_the_risk_down():
    behind, few = np.array([0.0, 0.02, 0.1]), logs([0.0, 0.02, 0.1], 5, cv=0.2)
    first = confidence(few)
    many = np.vstack([few - few.mean(axis=0)] * 200)[: 5 + first.missing] + behind
    assert first.risk > 0.05
    assert first.missing > 0
    assert confidence(many).risk < 0.06


@pytest.mark.parametrize(
    "text", ["", "save=", "save=0", "save=-1", "save=nan", "save=2=3", "save,save", "a b", "save=x"]
)
def test_what_is_no_goal_is_refused_with_what_is_one(text):
    with pytest.raises(UserError, match=r"--goal"):
        parse_goal(text)


@pytest.mark.parametrize("seed", range(20))
def test_what_differs_from_process_to_process_names_no_winner(sweep, seed):
    folder = sweep(
        {"use_ocdbt": (True, False)},
        lambda _: 1.0,
        rounds=20,
        cv=0.005,
        apart=0.04,
        per_process=5,
        seed=seed,
    )
    (case,) = best(folder).cases
    assert case.ranking.processes == 4
    alone, (low, high) = len(case.ranking.ties) == 1, _interval(case)
    assert alone == (not low < 1 < high)
    assert not alone


def _interval(case):
    place = case.ranking.places[1]
    return place.low, place.high


def test_one_percent_of_a_measure_counts_by_its_weight():
    goal = parse_goal("save=3,load=1")
    before = goal_value(goal, {"save": 2.0, "load": 5.0})
    after = goal_value(goal, {"save": 2.0, "load": 5.0 * 1.01**4})
    assert math.isclose(after / before, 1.01)


def test_measures_of_one_unit_keep_it():
    assert tuple(parse_goal(text).unit for text in ("save=2,load", "bytes", "save,bytes")) == (
        "s",
        "B",
        "",
    )


def test_a_goal_that_nobody_measured_is_refused_with_those_that_there_are(sweep):
    folder = sweep({"use_ocdbt": (True, False)}, lambda _: 1.0, rounds=2)
    with pytest.raises(UserError, match=r"no repeat has measured 'lod'.*load"):
        best(folder, goal="lod")
