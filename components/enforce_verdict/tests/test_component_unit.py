"""The enforce-verdict component: its compiled form, and its body."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.enforce_verdict import enforce_verdict
from orbax_bench_components.testing import call
from orbax_bench_core.engine import NotPassed


def test_a_pass_is_handed_on(tmp_path):
    assert call(enforce_verdict, tmp_path, verdict="PASS", lacking=[])["Output"] is None


@pytest.mark.parametrize(
    ("verdict", "lacking"), [("REGRESSION", []), ("INCONCLUSIVE", []), ("PASS", ["a step"])]
)
def test_anything_else_fails_the_step(tmp_path, verdict, lacking):
    with pytest.raises(NotPassed):
        call(enforce_verdict, tmp_path, verdict=verdict, lacking=lacking)


def test_what_is_inconclusive_may_be_tolerated(tmp_path):
    call(enforce_verdict, tmp_path, verdict="INCONCLUSIVE", allow_inconclusive=True)
