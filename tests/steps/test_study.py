"""The step that studies a run, after the step that reported on it."""

import pytest

from orbax_bench_core.lineage import trace
from orbax_bench_core.steps.pipeline import aggregate, study_async
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401

pytestmark = pytest.mark.slow


def test_the_report_links_to_a_study_that_was_written_after_it(make_sizes):
    run = make_sizes()
    aggregate(str(run.root))
    assert "async_study.html" not in (run.root / "report.html").read_text()
    for _ in range(2):  # a step that was told to end is started again
        study_async(str(run.root))
        assert (run.root / "report.html").read_text().count('href="async_study.html"') == 1


def test_what_the_study_was_made_from_stays_as_it_was_reported(make_sizes):
    run = make_sizes()
    reported = aggregate(str(run.root)).named
    study = study_async(str(run.root)).named["study"].metadata["digest"]
    after = aggregate(str(run.root)).named
    for name in ("samples", "tensorboard"):
        assert after[name].metadata["digest"] == reported[name].metadata["digest"]
    found = trace(str(run.root / "async_study.json"))
    assert (found[0].status, found[0].digest) == ("unchanged", study)
    assert [each.status for each in found if each.depth == 1] == ["unchanged"]
