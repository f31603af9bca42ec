"""A recorded job as a run, with the reports and answers of runs."""

import numpy as np
import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.analysis.recording import read_recording
from orbax_bench_core.errors import UserError
from orbax_bench_core.publishing import publish
from orbax_bench_core.recordings import suite_like, write_run
from orbax_bench_core.records import Run, RunDirectory
from tests.support.recordings import TS, Job


@pytest.fixture
def recorded(tmp_path):
    """Returns a job of two starts on two hosts, whose last checkpoint is there."""
    checkpoint = tmp_path / "ck" / "400"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(checkpoint, {"w": np.ones((8, 4), np.float32), "step": 3})
    for begin in (1.7e9, 1.7e9 + 500):
        for host in range(2):
            job = Job(tmp_path, host=host, hosts=2, begin=begin).train()
            for number in range(3):
                job.save(call=0.5, waited=0.1, own=1.0 + host, rss=100.0 + number).train()
            job.save(path=str(checkpoint)).train().write(close=begin > 1.7e9)
    return read_recording(str(tmp_path / "recording"))


def test_saves_are_repeats_with_their_times_and_events(tmp_path, recorded):
    directory = RunDirectory(str(tmp_path / "run"))
    write_run(recorded, suite_like(recorded), directory)
    publish(directory)
    run = Run(directory)
    (series,) = run.series()
    repeats = list(run.repeats(series))
    assert len(repeats) == 6  # the first save of each start is left out
    assert {len(repeat.records) for repeat in repeats} == {2}
    values = {
        (s.operation, s.metric.rpartition("/")[2]): s.value for s in repeats[0].records[1].samples
    }
    assert values["save_blocking", "time_s"] == pytest.approx(0.4)
    assert values["save_wait", "time_s"] == pytest.approx(0.1)
    assert values["save_background", "time_s"] == pytest.approx(2.0)
    assert values["save", TS.rpartition("/")[2].replace("_duration_secs", "_s")] == 2.0
    assert "shape: [8, 4]" in run.info.suite_text
    for name in ("report.html", "samples.parquet", "tensorboard", "lineage.json"):
        assert (tmp_path / "run" / name).exists(), name
    with pytest.raises(UserError, match="holds a run already"):
        write_run(recorded, suite_like(recorded), directory)


def test_a_job_whose_checkpoint_is_gone_has_no_suite(tmp_path):
    job = Job(tmp_path).train().saves_of(3).write()
    with pytest.raises(UserError, match="/ck/300"):
        suite_like(read_recording(str(job.folder)))
