"""Histories with everything that a report must show."""

import pytest

from orbax_bench_core.analysis.history.build import history
from orbax_bench_core.baselines import find_runs
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    make_nightly,
    make_paired_run,
    make_separate_run,
)

NASTY = "kind=<script>alert(1)</script>|[red]&amp;"


@pytest.fixture
def build():
    """Returns the history of runs."""
    return lambda runs: history(find_runs([str(run.root) for run in runs]))


@pytest.fixture
def changed(once, build, make_nightly, make_point):
    """A series of twenty runs that becomes slower with a version, under a nasty name."""
    pair = make_point(label=NASTY, candidate=make_point(label=NASTY))
    ratios, versions = [1.0] * 12 + [1.2] * 8, ["0.12.7"] * 12 + ["0.12.8"] * 8
    return once(
        "a changed history",
        lambda: build(make_nightly(ratios, versions, pair=pair, blocks=3)),
    )


@pytest.fixture
def separate(once, build, make_separate_run):
    """A series of twelve runs that are not paired."""
    return once(
        "a history of separate runs", lambda: build([make_separate_run(day) for day in range(12)])
    )
