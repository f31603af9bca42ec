"""A recording of a training job, given to commands that read runs."""

import pytest

from tests.support.recordings import Job


@pytest.mark.parametrize(
    "words",
    [
        ["report", "recording"],
        ["compare", "recording", "recording"],
        ["goodput", "--from-log", "recording"],
        ["history", "recording"],
        ["site", "recording"],
        ["run", "suite.yaml", "--output-directory=recording"],
    ],
    ids=" ".join,
)
def test_a_command_that_reads_runs_names_the_one_that_reads_a_recording(
    orbax_bench, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    Job(tmp_path).train().saves_of(2).write()
    before = sorted((tmp_path / "recording").rglob("*"))
    outcome = orbax_bench(*words)
    assert outcome.code == 2
    assert "recording is a recording of a training job, not a run" in outcome.err
    assert "`orbax-bench diagnose recording --as-run RUN`" in outcome.err
    assert outcome.err.count("\n") == 1
    assert sorted((tmp_path / "recording").rglob("*")) == before


def test_diagnose_reads_it(orbax_bench, tmp_path):
    Job(tmp_path).train().saves_of(2).write()
    assert orbax_bench("diagnose", tmp_path / "recording").code == 0
