"""Real Open MPI, on this machine and on three hosts with addresses of their own, with real JAX."""

import shlex
import signal

import psutil
import pytest

from tests.support.debian import why_not_installed
from tests.support.launching import (
    LONGEST_S,
    QUICK,
    launch,
    launched,
    records,
    wait_until,
    write_suite,
)
from tests.support.namespaces import Lab, why_not

pytestmark = pytest.mark.nightly

AGENT = """#!/bin/bash
# In place of ssh: HOST COMMAND..., which a shell of that host reads.
host=$1; shift
case $host in
{cases}
*) exit 255 ;;
esac
"""


@pytest.fixture
def environment(monkeypatch):
    if reason := why_not_installed("mpirun", "openmpi-bin"):
        pytest.skip(f"no Open MPI here: {reason}")
    # The tests are root.
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")


@pytest.fixture(scope="module")
def lab():
    if reason := why_not():
        pytest.skip(f"no network namespaces here: {reason}")
    with Lab(3) as lab:
        yield lab


@pytest.fixture
def over(lab, environment, monkeypatch, tmp_path):
    """Has `mpirun` on the first host of the lab reach the others, and returns its settings."""
    agent = tmp_path / "agent"
    cases = (
        f'{lab.host_name(host)}) exec {shlex.join(lab.inside(host))} bash -c "$*" ;;'
        for host in range(lab.size)
    )
    agent.write_text(AGENT.format(cases="\n".join(cases)))
    agent.chmod(0o755)
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", str(agent))
    names = ", ".join(lab.host_name(host) for host in range(lab.size))
    return ("--on", "mpi", "--hosts", lab.size, "--set", f"hosts=[{names}]")


def test_two_processes_of_this_machine(environment, tmp_path):
    suite, out = write_suite(tmp_path), tmp_path / "run"
    place = ("--on", "mpi", "--hosts", 2, "--set", "hosts=[localhost:2]", "--set", "map_by=slot")
    done = launch(suite, "-o", out, *place, *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(record["host"] for record in records(out)) == [0, 1]
    assert "cluster: Open MPI, host 0 of 2, head localhost:" in done.stdout
    assert "host 1: joined process 0" in done.stdout
    assert "\x1b" not in done.stdout


def test_three_machines_are_the_hosts_of_one_run(lab, over, tmp_path):
    suite, out = write_suite(tmp_path, devices=3), tmp_path / "run"
    words = (suite, "-o", out, *over, *QUICK)
    done = launch(*words, inside=lab.inside(0))
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(out)
    names = {record["host"]: record["provenance"]["host"]["name"] for record in found}
    assert names == {0: "ob0", 1: "ob1", 2: "ob2"}
    assert {record["status"] for record in found} == {"passed"}
    again = launch(*words, inside=lab.inside(0))
    assert again.returncode == 0, again.stdout + again.stderr
    assert records(out) == found


def test_the_token_is_on_no_command_line(lab, over, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=60, devices=3), tmp_path / "run", tmp_path / "l"
    process = launched(suite, "-o", out, *over, *QUICK, log=log, inside=lab.inside(0))
    wait_until(lambda: len(records(out)) >= 3, log.read_text)
    running = lab.processes()
    python = [one for one in running if "python" in one.name()]
    (mpirun,) = (one for one in running if one.name() == "mpirun")
    token = mpirun.environ()["ORBAX_BENCH_TOKEN"]
    assert len(token) == 64
    assert {one.name() for one in running} >= {"orted", "mpirun"}
    assert [one for one in running if token in " ".join(one.cmdline())] == []
    assert not any(token in file.read_text() for file in out.rglob("*.json"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    _, alive = psutil.wait_procs(python, timeout=5)
    assert alive == []


def test_a_machine_that_is_lost_ends_all_and_the_same_line_goes_on(lab, over, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=12, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, *over, *QUICK)
    process = launched(*words, log=log, inside=lab.inside(0))
    wait_until(lambda: len(records(out)) >= 3, log.read_text)
    lab.signal(1, signal.SIGKILL)
    assert process.wait(LONGEST_S) in (1, 130), log.read_text()
    assert len(records(out)) < 36
    done = launch(*words, inside=lab.inside(0))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([one for one in records(out) if one["status"] == "passed"]) == 36
