"""A recording of a training job, given to commands that read runs."""

import json
import sys

import numpy as np
import orbax.checkpoint as ocp
import pytest
from etils import epath

from orbax_bench_core.config import load_suite
from tests.support.bucket import served_bucket  # noqa: F401 - a fixture
from tests.support.processes import run_cli
from tests.support.recordings import NOON, Job


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


@pytest.mark.parametrize("options", [["-I"], ["-uE"], ["-X", "dev", "-I"], ["-Wd", "-s", "-I"]])
def test_a_python_that_would_record_nothing_is_refused(orbax_bench, tmp_path, options):
    command = ["python3.11", *options, "train.py"]
    outcome = orbax_bench("record", "-o", tmp_path, "--", *command)
    assert outcome.code == 2
    assert f"'python3.11' with {options[-1]} reads no variable of the environment" in outcome.err


def test_a_program_that_has_such_an_option_itself_is_started(tmp_path):
    for words in (["-u", "-c", "print('-E')", "-I"], ["-mplatform", "-E"], ["-V", "-c", "-I"]):
        done = run_cli("record", "-o", tmp_path, "--", sys.executable, *words)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("before", [[], ["--"]])
def test_a_program_gets_its_words_as_they_are(tmp_path, before):
    words = ["--more", "--out=2", "-o", "x", "--help", "--", "--more"]
    program = [sys.executable, "-c", "import sys; print(*sys.argv[1:])", *words]
    done = run_cli("record", "-o", tmp_path, *before, *program)
    assert done.stdout == " ".join(words) + "\n", done.stderr


def test_a_file_where_a_recording_would_go_is_refused(tmp_path):
    (tmp_path / "recording").write_text("")
    done = run_cli("record", "-o", tmp_path / "recording", "--", "true")
    assert (done.returncode, "is a file: give a directory" in done.stderr) == (2, True)


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


def test_a_suite_is_offered_only_where_a_checkpoint_is_left(orbax_bench, tmp_path):
    job = Job(tmp_path).train()
    for number in range(2):
        job.save(path=str(tmp_path / f"{number}")).train()
    job.write()
    assert "--suite" not in orbax_bench("diagnose", job.folder).out
    (tmp_path / "0").mkdir()
    assert "--suite" in orbax_bench("diagnose", job.folder).out


@pytest.mark.parametrize("waits_itself", [False, True])
def test_time_that_saves_wait_for_each_other_is_not_useful(orbax_bench, tmp_path, waits_itself):
    job = Job(tmp_path).train()
    for _ in range(30):
        if waits_itself:
            job.save(call=0.1, behind=2.0).lines.append({"line": "wait", "t": job.t, "seconds": 2})
            job.t += 2.0
        else:
            job.save(call=2.1, waited=2.0, behind=2.5)
        job.train(0.5)
    done = orbax_bench("diagnose", job.write().folder, "--json")
    interval = json.loads(done.out)["interval"]
    assert interval["now"] == pytest.approx(2.6)
    assert interval["goodput_now"] == pytest.approx(0.5 / 2.6, rel=0.01)
    assert interval["goodput_best"] > 0.95


@pytest.mark.parametrize(("begin", "assumed"), [(NOON + 1, True), (NOON + 1000, False)])
def test_jobs_that_run_at_the_same_time_have_no_failures(orbax_bench, tmp_path, begin, assumed):
    for at in (NOON, begin):
        job = Job(tmp_path, begin=at).train().saves_of(5).write()
    interval = json.loads(orbax_bench("diagnose", job.folder, "--json").out)["interval"]
    assert interval["mtbf_is_assumed"] == assumed


def test_a_job_that_never_runs_is_refused(orbax_bench, tmp_path):
    Job(tmp_path).train().saves_of(3).write()
    done = orbax_bench("diagnose", tmp_path / "recording", "--mtbf", "0")
    assert (done.code, "must be more than 0 seconds" in done.err) == (2, True)


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


def test_a_suite_has_all_items_of_the_last_checkpoint_that_is_left(orbax_bench, tmp_path):
    kept, tree = tmp_path / "ck" / "100", {"w": np.ones((8, 4), np.float32), "step": 3}
    items = {"opt": ocp.args.StandardSave(tree), "model": ocp.args.PyTreeSave(tree)}
    items |= {"at": ocp.args.ArraySave(np.arange(5)), "meta": ocp.args.JsonSave({"at": 1})}
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        checkpointer.save(kept, ocp.args.Composite(**items))
    job = Job(tmp_path).train()
    for path in (kept, kept, tmp_path / "ck" / "300"):
        job.save(path=str(path)).train()
    file = tmp_path / "job.yaml"
    done = orbax_bench("diagnose", job.write().folder, "--suite", file, "--as-run", tmp_path / "r")
    assert done.code == 0, done.err
    suite = load_suite(file).suite
    assert suite.suite_name == "like my job of 3 arrays, 296 B: options"
    spec = suite.checkpoint_configs[0].spec
    assert sorted(spec) == ["at", "model", "opt"]
    assert spec["opt"] == spec["model"]
    assert orbax_bench("report", tmp_path / "r").code == 0
