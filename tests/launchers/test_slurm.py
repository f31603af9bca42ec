"""Scripts for Slurm, and what is made of the answers of its clients, which are stand-ins here."""

import os
import shlex
import signal

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import Launch, place_named, place_settings
from orbax_bench_core.launchers.hardware import slice_shape

CLIENT = """#!/bin/sh
here=$(dirname "$0") program=$(basename "$0")
echo "$program $* token=${#ORBAX_BENCH_TOKEN} head=$ORBAX_BENCH_HEAD" >> "$here/calls"
count=$(grep -c "^$program " "$here/calls")
while [ ! -e "$here/$program.$count" ]; do count=$((count - 1)); done
. "$here/$program.$count"
"""


def job(state, code="0:0", restarts=0, reason="None"):
    fields = f"JobId=7 JobState={state} Reason={reason} Restarts={restarts} ExitCode={code}"
    return f"echo {fields}"


def fails(error, code=1):
    return f"echo {shlex.quote(error)} >&2; exit {code}"


def make(tmp_path, *settings, hosts=3, directory=None, **fields):
    place = place_named("slurm")
    launch = Launch(
        name="ob-tiny",
        command=("orbax-bench", "run", "a suite.yaml", "-o", "out"),
        output_directory=str(tmp_path / "out") if directory is None else directory,
        hosts=hosts,
        **fields,
    )
    return place.launcher(launch, place_settings(place, ["poll_s=0.001", *settings]))


@pytest.fixture
def clients(tmp_path, monkeypatch):
    """Puts clients on the path, each of which runs a line of shell per call, the last for ever."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def answer(*, sacct=None, **lines):
        given = {"sbatch": ["echo 7"], "scancel": ["exit 0"], **lines}
        if sacct is not None:
            given["sacct"] = sacct
        for program, answers in given.items():
            (folder / program).write_text(CLIENT)
            (folder / program).chmod(0o755)
            for number, line in enumerate(answers, start=1):
                (folder / f"{program}.{number}").write_text(line + "\n")
        return folder / "calls"

    return answer


def test_the_script_has_one_task_per_node_and_no_token(tmp_path):
    shown = make(tmp_path).shown()
    assert "#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=1\n#SBATCH --requeue\n" in shown
    assert f"#SBATCH --output={tmp_path}/out/launch/slurm-%j.log\n" in shown
    step = next(line for line in shown.splitlines() if line.startswith("exec srun"))
    assert "--nodes=3 --ntasks=3 --ntasks-per-node=1 --kill-on-bad-exit=0 --no-kill" in step
    assert step.endswith(" -m orbax_bench_core.cli run 'a suite.yaml' -o out")
    assert f"sbatch --parsable --export=ALL {tmp_path}/out/launch/ob-tiny.sbatch" in shown
    assert "TOKEN=" not in shown
    assert not (tmp_path / "out").exists()


def test_settings_are_lines_of_the_script(tmp_path):
    shown = make(
        tmp_path,
        *("partition=tpu", "account=007", "qos=high", "time=1:30:00", "gpus_per_node=8"),
        *("mem=0", "gres=gpu:h100:8", "cpus_per_task=4", "exclusive=false", "signal_s=90"),
        *('sbatch=["--constraint=a100|h100"]', 'srun=["--container-image=a b"]'),
        *('setup=["module load cuda"]', "program=orbax-bench"),
    ).shown()
    lines = shown.splitlines()
    for option in (
        *("--partition=tpu", "--account=007", "--qos=high", "--time=1:30:00", "--gpus-per-node=8"),
        *("--mem=0", "--gres=gpu:h100:8", "--cpus-per-task=4", "--signal=TERM@90"),
    ):
        assert f"#SBATCH {option}" in lines
    assert "#SBATCH '--constraint=a100|h100'" in lines
    assert "#SBATCH --exclusive" not in lines
    before, step = lines[lines.index("module load cuda") :][:2]
    assert before == "module load cuda"
    assert step.endswith(
        "--cpus-per-task=4 '--container-image=a b' orbax-bench run 'a suite.yaml' -o out"
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (r'partition="a\n#SBATCH --uid=0"', "a line break"),
        ('setup=["a\\nb"]', "a line break"),
        ("gpus_per_node=0", "greater than 0"),
        ("partitoin=a", "did you mean 'partition'"),
    ],
)
def test_a_wrong_setting_is_one_message(tmp_path, setting, said):
    with pytest.raises(UserError, match=said) as raised:
        make(tmp_path, setting)
    assert "--on slurm --set" in str(raised.value)


def test_a_bucket_needs_a_folder_for_the_log(tmp_path):
    with pytest.raises(UserError, match="give --set folder=DIRECTORY"):
        make(tmp_path, directory="gs://bucket/run")
    shown = make(tmp_path, f"folder={tmp_path}/100%", directory="gs://bucket/run").shown()
    assert f"#SBATCH --output={tmp_path}/100%%/slurm-%j.log" in shown


def test_an_image_is_for_a_plugin_of_the_cluster(tmp_path):
    with pytest.raises(UserError, match="--container-image=repo@sha256:0"):
        make(tmp_path, image="repo@sha256:0")


def test_a_missing_client_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"cannot find `sbatch`.*login node"):
        make(tmp_path).start()
    assert not (tmp_path / "out").exists()


def test_what_sbatch_says_is_passed_on(tmp_path, clients):
    clients(sbatch=[fails("sbatch: error: invalid partition: x")], scontrol=[job("COMPLETED")])
    with pytest.raises(UserError, match="refuses the job: sbatch: error: invalid partition: x"):
        make(tmp_path).start()


def test_a_job_is_followed_to_its_end(tmp_path, clients, capfd, monkeypatch):
    monkeypatch.setenv("ORBAX_BENCH_HEAD", "10.0.0.1:1")
    log = f"'{tmp_path}/out/launch/slurm-7.log'"
    calls = clients(
        scontrol=[
            job("PENDING", reason="Priority"),
            job("PENDING", reason="Priority"),
            f"printf '0: one\\n1: two\\nsrun: x\\n0: fo' >> {log}; {job('RUNNING')}",
            f"printf 'ur\\n12: no host' >> {log}; {job('RUNNING')}",
            job("COMPLETED"),
        ]
    )
    assert make(tmp_path).start() == 0
    printed = capfd.readouterr()
    assert printed.out == "one\nhost 1: two\nsrun: x\nfour\n12: no host\n"
    assert printed.err.count("job 7 is pending (Priority)\n") == 1
    assert "job 7 is running\n" in printed.err
    first = calls.read_text().splitlines()[0]
    assert first.startswith("sbatch --parsable --export=ALL ")
    assert first.endswith(" token=64 head=")


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (job("FAILED", "1:0"), 1, "has ended: failed, exit code 1\n"),
        (job("FAILED", "2:0"), 2, "has ended: failed, exit code 2\n"),
        (job("FAILED", "130:0"), 130, "exit code 130; the same line again"),
        (job("FAILED", "137:0"), 1, "exit code 137\n"),
        (job("FAILED", "0:9"), 1, "exit code 137\n"),
        (job("TIMEOUT", "0:15"), 1, "has ended: timeout, exit code 143; the same line again"),
        (job("CANCELLED", "0:15"), 130, "has ended: cancelled"),
        (job("OUT_OF_MEMORY", "0:125"), 1, "out of memory"),
    ],
)
def test_the_exit_code_is_that_of_the_run(tmp_path, clients, capfd, end, code, said):
    clients(scontrol=[job("RUNNING"), end])
    assert make(tmp_path).start() == code
    assert said in capfd.readouterr().err


def test_a_job_that_is_queued_again_is_followed_on(tmp_path, clients, capfd):
    clients(
        scontrol=[
            job("RUNNING"),
            job("NODE_FAIL", "0:1"),
            job("PENDING", restarts=1, reason="BeginTime"),
            job("RUNNING", restarts=1),
            job("COMPLETED", restarts=1),
        ]
    )
    assert make(tmp_path).start() == 0
    assert "job 7 is running, restarted 1x" in capfd.readouterr().err


def test_a_controller_that_does_not_answer_is_asked_again(tmp_path, clients, capfd):
    down = fails("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    clients(scontrol=[job("RUNNING"), down, down, job("COMPLETED")])
    assert make(tmp_path).start() == 0
    assert capfd.readouterr().err.count("is asked again") == 1


@pytest.mark.parametrize(
    ("sacct", "code", "said"),
    [
        (["echo 'COMPLETED|0:0'"], 0, ""),
        (["echo 'CANCELLED by 1000|0:0'"], 130, "has ended: cancelled"),
        ([fails("Slurm accounting storage is disabled")], 1, "has ended: forgotten"),
    ],
)
def test_a_job_that_is_forgotten_is_looked_up(tmp_path, clients, capfd, sacct, code, said):
    clients(scontrol=[fails("slurm_load_jobs error: Invalid job id specified")], sacct=sacct)
    assert make(tmp_path).start() == code
    assert said in capfd.readouterr().err


def test_what_an_interrupt_leaves_of_the_log_is_passed_on_once(tmp_path, clients, capfd):
    log = f"'{tmp_path}/out/launch/slurm-7.log'"
    calls = clients(
        scontrol=[
            f"echo '0: one' >> {log}; {job('RUNNING')}",
            f"kill -INT $PPID; sleep 0.1; {job('RUNNING')}",
            f"echo '0: two' >> {log}; {job('CANCELLED', '0:15')}",
        ]
    )
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert make(tmp_path).start() == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().out == "one\ntwo\n"
    assert "scancel 7" in calls.read_text()


def test_a_job_may_be_left_alone(tmp_path, clients, capfd):
    clients(scontrol=[fails("never asked")])
    assert make(tmp_path, "follow=false").start() == 0
    assert "submitted job 7 of 3 nodes" in capfd.readouterr().err


def test_a_slice_has_as_many_nodes_as_hosts(tmp_path):
    shape = slice_shape("v5e", "4x8")
    assert "#SBATCH --nodes=8" in make(tmp_path, tpu=shape, hosts=shape.hosts).shown()
