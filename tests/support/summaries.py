"""A run in which everything occurs that a report must show."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.records import ErrorInfo, Run, State, repeats_of
from orbax_bench_core.sweep import Expansion

NASTY = "kind=<script>alert(1)</script>|[red]&amp;"


@pytest.fixture
def eventful_run(make_run, make_record, make_point):
    """A run with a point that passed, one with a nasty name and one that failed."""
    good = make_point(options={"a": 1}, label="a=1")
    nasty = make_point(options={"a": 2}, label=NASTY)
    bad = make_point(options={"a": 3}, label="a=3")
    error = ErrorInfo(type="ValueError", message="a|b <b>bold</b> [red]\nsecond")
    records = [
        make_record(
            good,
            times={"save": 0.5, "load": 0.25},
            sizes={"save": 2**30},
            state=State(num_bytes=2**30, digest={}),
        ),
        make_record(nasty, times={"save": 1.5}),
        make_record(bad, status="failed", error=error),
    ]
    run = make_run(records)
    info = run.read_info()
    skip = {"point": make_point(label="too big [x]"), "reason": "needs [8] devices"}
    points = info.expansion.points
    expansion = Expansion(points=points, skipped=(skip,), notes=("mind [this]",))
    run.write_info(info.model_copy(update={"expansion": expansion}))
    return run


@pytest.fixture
def pages(eventful_run):
    """Renders a page of the eventful run."""
    records = list(Run(eventful_run).records())

    def render(page, example=records[0]):
        return page(eventful_run.read_info(), summarize(repeats_of(records)), example)

    return render
