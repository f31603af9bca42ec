"""A recording of a training job, given to commands that read runs."""

import pytest
from etils import epath

from tests.support.bucket import served_bucket  # noqa: F401 - a fixture
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


def test_a_recording_in_a_bucket_is_told_as_one_on_disk_and_stays_as_it_is(
    orbax_bench,
    tmp_path,
    served_bucket,
):
    Job(tmp_path).train().saves_of(2).write(close=False)
    (lines,) = (tmp_path / "recording").rglob("*.jsonl")
    folder = epath.Path(f"{served_bucket}/jobs/recording")
    (folder / "host_00000" / f"{lines.stem}.part_00001.jsonl").write_bytes(lines.read_bytes())
    for words in (
        *(("report", folder), ("compare", folder, folder), ("history", folder), ("best", folder)),
        *(("goodput", "--from-log", folder), ("site", folder), ("run", "s.yaml", "-o", folder)),
    ):
        outcome = orbax_bench(*words)
        assert outcome.code == 2, words
        assert f"{folder} is a recording of a training job, not a run" in outcome.err, words
        assert f"`orbax-bench diagnose {folder} --as-run RUN`" in outcome.err
    assert [each.name for each in folder.iterdir()] == ["host_00000"]
    assert orbax_bench("diagnose", folder).code == 0


def test_diagnose_reads_it(orbax_bench, tmp_path):
    Job(tmp_path).train().saves_of(2).write()
    assert orbax_bench("diagnose", tmp_path / "recording").code == 0


@pytest.mark.parametrize(
    ("saves", "call", "named"),
    [
        pytest.param(60, 1.0, True, id="a tenth of the time"),
        pytest.param(40, 1.0, False, id="a short job"),
        pytest.param(60, 0.1, False, id="a hundredth of the time"),
    ],
)
def test_diagnose_names_an_interval_that_costs_much_of_a_long_job(
    orbax_bench, tmp_path, saves, call, named
):
    Job(tmp_path).train().saves_of(saves, call=call).write()
    done = orbax_bench("diagnose", tmp_path / "recording", "--mtbf", "4h")
    assert done.code == (1 if named else 0), done.out
    said = " ".join(done.out.split())
    assert ("SAVES TOO OFTEN: saves every 11 s and failures cost 9." in said) == named
    assert ("What helps: save every " in said) == named
