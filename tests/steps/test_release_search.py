"""The search for the first bad release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbax_bench_core.steps.release_search import search_releases

RELEASES = [f"1.{minor}" for minor in range(9)]


def search(first_bad, doubtful=()):
    asked = []

    def outcome(release):
        asked.append(release)
        if release in doubtful:
            return doubtful[release]
        return "REGRESSION" if RELEASES.index(release) >= first_bad else "PASS"

    return search_releases(RELEASES, outcome), asked


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_the_first_bad_release_is_found_in_few_steps(first_bad):
    found, asked = search(first_bad)
    assert (found.last_good, found.first_bad) == (RELEASES[first_bad - 1], RELEASES[first_bad])
    assert len(asked) <= 4
    assert found.undecided == ()


def test_without_a_regression_only_the_last_is_measured():
    found, asked = search(99)
    assert found.first_bad is None
    assert asked == [RELEASES[-1]]


@pytest.mark.parametrize("word", ["INCONCLUSIVE", "FAILED"])
def test_no_verdict_on_the_last_release_ends_the_search(word):
    found, _ = search(5, {RELEASES[-1]: word})
    assert found.first_bad is None
    assert found.outcomes == {RELEASES[-1]: word}


def test_a_release_without_a_verdict_is_passed_over_and_said():
    found, _ = search(5, {"1.4": "FAILED"})
    assert (found.last_good, found.first_bad, found.undecided) == ("1.3", "1.5", ("1.4",))


def test_neighbouring_releases_need_no_search():
    assert search_releases(["1.0", "1.1"], lambda release: "REGRESSION").first_bad == "1.1"


@given(st.integers(1, 8), st.sets(st.sampled_from(RELEASES[1:-1])))
def test_the_truth_lies_between_what_is_reported(first_bad, doubtful):
    found, asked = search(first_bad, dict.fromkeys(doubtful, "INCONCLUSIVE"))
    last_good, reported = RELEASES.index(found.last_good), RELEASES.index(found.first_bad)
    assert last_good < first_bad <= reported
    assert set(RELEASES[last_good + 1 : reported]) == set(found.undecided) <= doubtful
    assert len(asked) == len(set(asked))
