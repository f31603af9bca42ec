"""Enforcement of verdicts."""

import pytest

from orbax_bench_core.analysis.verdicts.model import NotPassed, enforce
from orbax_bench_core.config import UserError


@pytest.mark.parametrize(
    ("verdict", "allowed"),
    [("PASS", False), ("PASS", True), ("INCONCLUSIVE", True)],
)
def test_good_enough(verdict, allowed):
    enforce(verdict, None, allow_inconclusive=allowed)


@pytest.mark.parametrize(("verdict", "allowed"), [("REGRESSION", True), ("INCONCLUSIVE", False)])
def test_not_good_enough(verdict, allowed):
    with pytest.raises(NotPassed, match=verdict):
        enforce(verdict, None, allow_inconclusive=allowed)


def test_a_word_that_is_no_verdict_is_refused():
    with pytest.raises(UserError, match="not a verdict: 'FINE'"):
        enforce("FINE", None, allow_inconclusive=True)
