"""A search drops points round by round, and goes on where it was stopped."""

import types

import numpy as np
import pytest

from orbax_bench_core.analysis.best import parse_goal, read_search
from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LocalHost, RunSettings, Session, silent
from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.steps import publish, search_points
from orbax_bench_core.steps.search import _check, _Searching
from tests.support.fake_worker import MODULE
from tests.support.scripted import NAME

SUITE = f"""\
suite_name: search
num_repeats: 10
execution: {{warmups: 0, retries: 0}}
benchmarks:
- generator: {NAME}
  options: {{save_s: [0.02, 0.03, 0.04]}}
"""
ERROR = ErrorInfo(type="ValueError", message="no")


@pytest.fixture
def measured(make_run, make_record, make_point):
    """Makes a session whose records are there as soon as a search asks for a round."""

    def make(seconds, *, rounds=20, cv=0.01, fails=(), order="interleaved", **fields):
        points = [make_point(options={"a": number}, label=f"a={number}") for number in seconds]
        rng = np.random.default_rng(0)
        run = make_run([], points=points, num_repeats=rounds)
        info = run.read_info()
        execution = info.execution.model_copy(update={"order": order})
        session = types.SimpleNamespace(
            directory=run,
            info=info.model_copy(update={"execution": execution}),
            plain=tuple(points),
            say=silent,
        )

        def go_on(goal=None):
            searching = _Searching(session, goal)
            number = 0
            while asked := searching.next_round(number):
                for point in asked:
                    if run.read_repeat(point, number).records:
                        continue
                    place = point.options["a"]
                    failed = (place, number) in fails
                    outcome = {"status": "failed", "error": ERROR} if failed else {}
                    save = seconds[place] * float(rng.lognormal(0, cv))
                    times = {} if failed else {"save": save}
                    run.write_record(make_record(point, number, times=times, **outcome))
                number += 1
            return searching.found

        session.go_on = go_on
        return session

    return make


def names(session, ids):
    return {point.options["a"] for point in session.plain if point.id in ids}


def test_clear_differences_take_three_rounds(measured):
    session = measured(dict(enumerate([0.02, 0.03, 0.04, 0.05])))
    found = session.go_on()
    assert (found.measured, found.rounds, found.goal.text) == (12, 3, "save")
    assert "within 5 % of the best" in found.ended


def test_points_clearly_behind_are_measured_no_more(measured):
    times = {number: 1.0 + 0.01 * (number < 4) + (number >= 4) for number in range(8)}
    session = measured(times, cv=0.1, rounds=12)
    found = session.go_on()
    assert names(session, found.dropped) <= {4, 5, 6, 7}
    assert found.stages[0].after == 3
    assert found.measured < 8 * found.rounds


def test_a_point_that_failed_goes_no_further_and_is_named(measured):
    session = measured({0: 0.02, 1: 0.021}, rounds=4, fails={(0, 1)})
    found = session.go_on()
    (stage,) = found.stages
    assert (names(session, stage.failed), stage.dropped) == ({0}, ())
    assert found.ended == "the only point that is left"


def test_where_all_fail_it_ends(measured):
    session = measured({0: 1.0, 1: 1.0}, fails={(0, 0), (1, 0)})
    assert session.go_on().ended == "no point has passed in all 3 rounds"


def test_rounds_that_are_used_up_end_it(measured):
    session = measured({0: 1.0, 1: 1.0}, rounds=5, cv=0.3)
    assert session.go_on().ended == "all 5 rounds of the suite are used up"


def test_a_search_that_was_stopped_decides_the_same_again(measured):
    session = measured({number: 1.0 + number / 10 for number in range(6)}, cv=0.05)
    first = session.go_on()
    assert session.go_on() == first == read_search(session.directory, session.info)


@pytest.mark.slow
def test_a_run_is_complete_when_its_search_has_ended(measured):
    session = measured({0: 1.0, 1: 2.0, 2: 1.01}, cv=0.05)
    session.go_on()
    publish(session.directory)
    assert session.directory.read_info().status == "complete"
    assert "a search for save" in (session.directory.root / "report.md").read_text()


def test_another_goal_in_the_same_directory_is_refused(measured):
    session = measured({0: 1.0, 1: 2.0})
    session.go_on()
    with pytest.raises(UserError, match="was searched for save"):
        session.go_on(parse_goal("load"))


def test_a_goal_that_is_not_measured_ends_it_with_those_that_are(measured):
    with pytest.raises(UserError, match=r"'lod'; there are save"):
        measured({0: 1.0, 1: 2.0}).go_on(parse_goal("lod"))


@pytest.mark.parametrize(
    ("times", "fields", "said"),
    [
        ({0: 1.0, 1: 1.0}, {"rounds": 3}, "--override num_repeats=30"),
        ({0: 1.0}, {}, "do the same work"),
        ({0: 1.0, 1: 1.0}, {"order": "sequential"}, "order: interleaved"),
    ],
)
def test_what_cannot_be_searched_is_refused(measured, times, fields, said):
    with pytest.raises(UserError, match=said):
        _check(measured(times, **fields))


@pytest.mark.slow
def test_a_search_measures_with_workers_and_nothing_twice(tmp_path):
    def search():
        settings = RunSettings(host=LocalHost(module=MODULE), placed=True)
        session = Session.begin(parse_suite(SUITE, ""), str(tmp_path / "run"), settings=settings)
        found = search_points(session, limits=False, lock=False)
        return found, {record.started_at for record in session.directory.records()}

    first, second = search(), search()
    assert first == second
    assert first[0].measured == len(first[1]) == 9
