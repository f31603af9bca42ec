"""Lines of `mpirun`, and what is made of its outputs; `mpirun` is a stand-in here."""

import os

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import Launch, place_named, place_settings

MPIRUN = """#!/bin/sh
echo "$*" > {folder}/words
echo "${{#ORBAX_BENCH_TOKEN}} $ORBAX_BENCH_HEAD_HOST $ORBAX_BENCH_HEAD $OMPI_MCA_btl" \
  > {folder}/variables
{then}
"""


def make(*settings, hosts=2, **fields):
    place = place_named("mpi")
    launch = Launch(
        name="ob-tiny",
        command=("orbax-bench", "run", "a suite.yaml", "-o", "out"),
        output_directory="out",
        hosts=hosts,
        **fields,
    )
    return place.launcher(launch, place_settings(place, settings))


@pytest.fixture
def mpirun(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def then(lines):
        (tmp_path / "mpirun").write_text(MPIRUN.format(folder=tmp_path, then=lines))
        (tmp_path / "mpirun").chmod(0o755)
        return tmp_path

    return then


def test_the_line_has_one_process_per_machine_and_names_variables_alone(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/secret/place")
    shown = make("hosts=[a, b]", "variables=[NCCL_DEBUG]", 'mpirun=["--mca", "btl", "tcp"]').shown()
    assert "ORBAX_BENCH_HEAD_HOST=a TERM=dumb mpirun -n 2 --host a,b --map-by ppr:1:node" in shown
    assert "-x ORBAX_BENCH_TOKEN -x ORBAX_BENCH_HEAD_HOST -x TERM -x PYTHONPATH" in shown
    assert "-x NCCL_DEBUG --mca btl tcp " in shown
    assert shown.endswith(" -m orbax_bench_core.cli run 'a suite.yaml' -o out")
    assert "/secret/place" not in shown


@pytest.mark.parametrize(
    ("text", "head"),
    [("# ours\n\n  node1 slots=8\nnode2\n", "node1"), ("10.0.0.1:4\n", "10.0.0.1")],
)
def test_process_0_is_on_the_first_machine_of_a_file(tmp_path, text, head):
    (tmp_path / "machines").write_text(text)
    shown = make(f"hostfile={tmp_path}/machines").shown()
    assert (
        f"ORBAX_BENCH_HEAD_HOST={head} TERM=dumb mpirun -n 2 --hostfile {tmp_path}/machines"
        in shown
    )


def test_a_batch_system_may_choose_the_machines():
    assert (
        "HEAD_HOST=n7 TERM=dumb mpirun -n 2 --map-by ppr:1:node --bind-to none"
        in make("head=n7").shown()
    )


def test_processes_of_one_machine_are_slots():
    shown = make("hosts=[localhost:2]", "map_by=slot").shown()
    assert (
        "ORBAX_BENCH_HEAD_HOST=localhost TERM=dumb mpirun -n 2 --host localhost:2 --map-by slot"
        in shown
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], "nothing says on which machine process 0 is"),
        (["hosts=[a, b, c]"], "--hosts 2: --set hosts names 3 machines"),
        (["hosts=[a, b]", "hostfile=x"], "give one of them"),
        (["hostfile=/nowhere"], "--set hostfile=/nowhere: No such file"),
        (["host=[a]"], "did you mean 'hosts'"),
    ],
)
def test_what_cannot_be_started_is_one_message(settings, said):
    with pytest.raises(UserError) as raised:
        make(*settings)
    assert said in str(raised.value)


def test_an_image_is_refused():
    with pytest.raises(UserError, match="--image"):
        make("hosts=[a, b]", image="repo@sha256:0")


def test_a_missing_client_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"cannot find `mpirun`.*openmpi-bin"):
        make("hosts=[a, b]").start()


def test_the_token_is_in_the_environment_alone(mpirun, monkeypatch):
    monkeypatch.setenv("ORBAX_BENCH_HEAD", "10.0.0.1:1")
    monkeypatch.setenv("OMPI_MCA_btl", "tcp,self")
    folder = mpirun("exit 0")
    assert make("hosts=[a, b]").start() == 0
    assert (folder / "variables").read_text() == "64 a  tcp,self\n"
    assert "TOKEN=" not in (folder / "words").read_text()


def test_lines_are_shown_with_the_number_of_their_host(mpirun, capfd):
    mpirun(
        "echo '[1,0]<stdout>:one'; echo '[1,1]<stderr>:two'; "
        "echo '[prterun-n-7@1,1]<stdout>: three'; echo mpirun says"
    )
    make("hosts=[a, b]").start()
    assert capfd.readouterr().out == "one\nhost 1: two\nhost 1: three\nmpirun says\n"


@pytest.mark.parametrize(
    ("code", "meant"), [(0, 0), (1, 1), (2, 2), (3, 3), (130, 130), (75, 1), (137, 1)]
)
def test_the_exit_code_is_that_of_the_run(mpirun, code, meant):
    mpirun(f"exit {code}")
    assert make("hosts=[a, b]").start() == meant
