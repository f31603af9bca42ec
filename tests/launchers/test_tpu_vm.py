"""Commands for a Cloud TPU VM, and what its hosts run, here with a fake metadata server."""

import functools
import stat
import subprocess
from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError

VM = ("tpu_name=vm", "zone=us-central2-b")


@pytest.fixture
def made(make):
    return functools.partial(
        make, "tpu-vm", *VM, directory="gs://bucket/a run", image=None, tpu="v4:2x2x4"
    )


def test_the_exact_commands_are_shown(made):
    said, prepare, copy, run = made("project=p").shown().split("\n", 3)
    where = "--zone us-central2-b --worker=all --project p"
    assert said.startswith("# to gs://bucket/a run/suite go ")
    assert prepare == (
        f"gcloud compute tpus tpu-vm ssh vm {where} --batch-size=all --command "
        "'rm -f ./.ob-tiny.token; (umask 077 && : > ./.ob-tiny.token)'"
    )
    assert copy == f"gcloud compute tpus tpu-vm scp FILE vm:./.ob-tiny.token {where}"
    assert run.startswith(f"gcloud compute tpus tpu-vm ssh vm {where} --batch-size=all --command")


PROGRAMS = {
    "orbax-bench": """
echo "$ORBAX_BENCH_CLUSTER, $ORBAX_BENCH_NUM_HOSTS hosts, $ORBAX_BENCH_TOKEN: $*"
exit 3
""",
    # It would look once a second whether the command has ended.
    "tail": 'exec /usr/bin/tail -s 0.01 "$@"\n',
}


def test_a_host_takes_the_token_from_its_file_and_returns_the_code(made, tmp_path):
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name, text in PROGRAMS.items():
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
    (home / ".ob-tiny.token").write_text("secret")
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
        "tpu-vm, 4 hosts, secret: "
        "run gs://bucket/a run/suite/tiny suite.yaml -o gs://bucket/a run\n"
    )
    assert (home / ".ob-tiny.log").read_text() == done.stdout
    assert done.returncode == 3, done.stderr
    assert not (home / ".ob-tiny.token").exists()


@pytest.fixture
def fake_gcloud(tmp_path, monkeypatch):
    """Puts a program on the path that notes its words, and keeps what it is to copy."""
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
echo "$*" | head -1 >> {tmp_path}/calls
if [ "$4" = scp ]; then cp -p "$5" {tmp_path}/copied; fi
case "$*" in *nohup*) exit 3 ;; esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path


def test_the_token_goes_as_a_file_and_is_in_no_command(made, fake_gcloud):
    assert made("suite_on_hosts=/suites/a.yaml").start() == 3
    copied = fake_gcloud / "copied"
    token = copied.read_text()
    assert len(token) == 64
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    calls = (fake_gcloud / "calls").read_text()
    assert token not in calls
    assert [line.split()[3] for line in calls.splitlines()] == ["ssh", "scp", "ssh", "ssh"]
    source = calls.splitlines()[1].split()[4]
    assert not Path(source).exists(), "the file is removed here"
    assert "kill $(cat ./.ob-tiny.pid)" in calls.splitlines()[3]


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


def test_a_machine_without_gcloud_is_one_message(made, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="cannot find `gcloud`"):
        made().start()
