"""The search for the first bad release."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbax_bench_core.experiments.releases.search import expected_comparisons, search_releases

RELEASES = [f"1.{minor}" for minor in range(9)]


def stepped(steps, doubtful=()):
    """Returns the verdicts that steps of so many percent give, by the release that has each.

    A slow-down of 15 % or more is a REGRESSION, and one of less than 8 % a PASS.
    """
    levels, level = {}, 0.0
    for release in RELEASES:
        level += steps.get(release, 0)
        levels[release] = level

    def outcome(release, against):
        if release in doubtful:
            return doubtful[release]
        slower = levels[release] - levels[against]
        return "REGRESSION" if slower >= 15 else "PASS" if slower < 8 else "INCONCLUSIVE"

    return outcome


def search(steps, doubtful=()):
    return search_releases(RELEASES, stepped(steps, doubtful))


def pairs(found):
    return [(step.release, step.against) for step in found.steps]


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_the_first_bad_release_is_named_after_a_comparison_with_its_predecessor(first_bad):
    found = search({RELEASES[first_bad]: 50})
    before, name = RELEASES[first_bad - 1], RELEASES[first_bad]
    assert (found.conclusion, found.last_good, found.first_bad) == ("named", before, name)
    last = found.steps[-1]
    assert (last.release, last.against, last.purpose) == (name, before, "confirm")
    assert len(found.steps) <= 5


@pytest.mark.parametrize(
    ("word", "conclusion"), [("PASS", "same"), ("INCONCLUSIVE", "undecided"), ("FAILED", "failed")]
)
def test_without_a_regression_of_the_ends_there_is_nothing_to_search(word, conclusion):
    found = search_releases(RELEASES, lambda release, against: word)
    assert (found.conclusion, found.last_good, found.first_bad) == (conclusion, "1.0", None)
    assert pairs(found) == [("1.8", "1.0")]


def test_a_release_without_a_verdict_makes_a_range_and_no_name():
    found = search({"1.5": 50}, {"1.4": "FAILED"})
    assert (found.conclusion, found.last_good, found.first_bad) == ("range", "1.3", "1.5")
    assert found.undecided == ("1.4",)


@pytest.mark.parametrize("word", ["INCONCLUSIVE", "FAILED"])
def test_a_name_that_cannot_be_confirmed_is_a_range(word):
    truth = stepped({"1.5": 50})

    def outcome(release, against):
        return word if (release, against) == ("1.5", "1.4") else truth(release, against)

    found = search_releases(RELEASES, outcome)
    assert (found.conclusion, found.last_good, found.first_bad) == ("range", "1.4", "1.5")
    assert found.undecided == ()


def test_a_first_bad_release_as_its_predecessor_is_not_named_and_the_rest_is_searched():
    truth = stepped({"1.6": 50})

    def outcome(release, against):
        # A false alarm against the good one, as a small step before it makes likely.
        return "REGRESSION" if (release, against) == ("1.4", "1.0") else truth(release, against)

    found = search_releases(RELEASES, outcome)
    assert ("1.4", "1.3") in pairs(found)
    assert (found.conclusion, found.first_bad) == ("named", "1.6")


def test_small_steps_that_add_up_are_a_range():
    found = search(dict.fromkeys(RELEASES[1:], 4))
    assert found.conclusion == "range"
    assert RELEASES.index(found.last_good) < RELEASES.index(found.first_bad)


def test_a_search_begins_again_three_times_at_most():
    found = search_releases(
        [str(number) for number in range(40)],
        lambda release, against: "PASS" if int(release) - int(against) == 1 else "REGRESSION",
    )
    assert found.conclusion == "range"
    assert [step.purpose for step in found.steps].count("confirm") == 3


def test_neighbouring_releases_are_compared_once():
    found = search_releases(["1.0", "1.1"], lambda release, against: "REGRESSION")
    assert (found.conclusion, found.first_bad, len(found.steps)) == ("named", "1.1", 1)


@pytest.mark.parametrize(("releases", "usual"), [(2, 1), (3, 3), (9, 5), (10, 6)])
def test_the_number_of_comparisons_is_known_before(releases, usual):
    names = [str(number) for number in range(releases)]
    assert expected_comparisons(releases)[0] == usual
    for bad in range(1, releases):
        found = search_releases(
            names, lambda release, against, bad=bad: _across(int(release), int(against), bad)
        )
        assert len(found.steps) <= usual


def _across(release, against, bad):
    return "REGRESSION" if against < bad <= release else "PASS"


@given(
    st.dictionaries(st.sampled_from(RELEASES[1:]), st.sampled_from([6, 10, 20, 50]), min_size=1),
    st.sets(st.sampled_from(RELEASES[1:-1])),
)
def test_only_a_release_with_a_step_of_its_own_is_named(steps, doubtful):
    found = search(steps, dict.fromkeys(doubtful, "INCONCLUSIVE"))
    if found.conclusion == "named":
        assert steps[found.first_bad] >= 15
        assert RELEASES.index(found.first_bad) - RELEASES.index(found.last_good) == 1
    elif found.conclusion == "range":
        inside = RELEASES[RELEASES.index(found.last_good) + 1 : RELEASES.index(found.first_bad)]
        assert set(found.undecided) <= set(inside)
        assert any(release in steps for release in [*inside, found.first_bad])
    assert len(found.steps) <= 3 * (math.ceil(math.log2(8)) + 2) + 2 * len(doubtful)
