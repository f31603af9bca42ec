"""Staging budget from which on a save blocks: fitted on accelerators, and nowhere else."""

import pytest

from orbax_bench_core.analysis.best import best
from tests.conftest import PROVENANCE

BUDGETS = {"device_host_concurrent_gb": (None, 1.0, 4.0, 16.0)}


@pytest.fixture
def said(sweep):
    """Returns what is said of saves that block below so many GiB."""

    def say(below, *, platform="gpu", budgets=BUDGETS, **more):
        provenance = {**PROVENANCE, "devices": {"count": 8, "kind": "x", "platform": platform}}

        def of(options, _):
            budget = options["device_host_concurrent_gb"]
            blocked = 1.0 if budget is None or budget >= below else below / budget
            noise = 1 + 0.01 * _
            return {
                "provenance": provenance,
                "times": {"save": 20.0 * noise, "save_blocking": blocked * noise},
            }

        (case,) = best(sweep(budgets, lambda _: 1.0, of=of, **more)).cases
        return case.staging

    return say


def test_the_cliff_lies_between_two_budgets(said):
    (line,) = said(below=4.0)
    assert "blocking begins between 1 and 4 GiB; at 1 GiB it is 4.000x" in line


def test_a_cliff_above_all_budgets_lies_below_no_limit(said):
    assert "between 16 GiB and no limit" in said(below=32.0)[0]


def test_no_cliff_is_said_too(said):
    assert "no budget down to 1 GiB blocks longer" in said(below=0.5)[0]


def test_on_cpus_it_is_not_applicable(said):
    assert said(below=4.0, platform="cpu") == (
        "device_host_concurrent_gb: where blocking begins is not applicable on CPU",
    )


def test_without_a_point_of_no_limit_it_is_unknown(said):
    (line,) = said(below=4.0, budgets={"device_host_concurrent_gb": (1.0, 4.0)})
    assert "no point has no limit" in line


def test_one_round_is_too_few(said):
    assert "takes two rounds or more" in said(below=4.0, rounds=1)[0]


def test_without_a_budget_there_is_nothing_to_say(sweep):
    (case,) = best(sweep({"use_ocdbt": (True, False)}, lambda _: 1.0)).cases
    assert case.staging == ()
