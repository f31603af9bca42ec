"""Commands for a Cloud TPU VM, and what its hosts run, here with a fake metadata server."""

import functools
import subprocess

import pytest

from orbax_bench_core.errors import UserError

VM = ("tpu_name=vm", "zone=us-central2-b")


@pytest.fixture
def made(make):
    return functools.partial(
        make, "tpu-vm", *VM, directory="gs://bucket/a run", image=None, tpu="v4:2x2x4"
    )


def test_the_exact_commands_are_shown(made):
    said, run = made("project=p").shown().split("\n", 1)
    assert said.startswith("# to gs://bucket/a run/suite go ")
    ssh = "gcloud compute tpus tpu-vm ssh vm --zone us-central2-b --project p --worker=all"
    assert run.startswith(f"{ssh} --batch-size=all --command 'bash -c ")
    assert "TOKEN" not in run


PROGRAMS = {
    "orbax-bench": """
echo "$ORBAX_BENCH_CLUSTER, $ORBAX_BENCH_NUM_HOSTS hosts: $*"
exit 3
""",
    # It would look once a second whether the command has ended.
    "tail": 'exec /usr/bin/tail -s 0.01 "$@"\n',
}


def test_a_host_keeps_a_log_prints_it_and_returns_the_code(made, tmp_path):
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name, text in PROGRAMS.items():
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", made().script],
        cwd=home,
        env={"PATH": f"{home}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == (
        "tpu-vm, 4 hosts: run gs://bucket/a run/suite/tiny suite.yaml -o gs://bucket/a run\n"
    )
    assert (home / ".ob-tiny.log").read_text() == done.stdout
    assert done.returncode == 3, done.stderr


def test_what_still_runs_is_ended(made, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    calls = tmp_path / "calls"
    program.write_text(
        f"""#!/bin/sh
echo "$*" | tail -1 >> {calls}
case "$*" in *nohup*) exit 3 ;; esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert made("suite_on_hosts=/suites/a.yaml").start() == 3
    _, end = calls.read_text().splitlines()
    assert "kill $(cat ./.ob-tiny.pid)" in end


@pytest.mark.parametrize(
    ("settings", "changes", "said"),
    [
        ([], {"tpu": None}, "needs --tpu"),
        ([], {"slices": 2}, "is for one slice"),
        ([], {"image": "bench:1"}, "leave --image out"),
        ([], {"output_directory": "/tmp/run"}, "--set mounted=PATH"),
        (["mounted=/mnt/a"], {"output_directory": "/tmp/run"}, "put it below /mnt/a"),
    ],
)
def test_what_cannot_run_there_is_one_message(made, settings, changes, said):
    with pytest.raises(UserError, match=said):
        made(*settings, **changes)
