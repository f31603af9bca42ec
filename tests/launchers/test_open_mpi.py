"""The line of docs/launch/mpi.md with real Open MPI: three hosts with addresses of their own."""

import shlex
import signal
import subprocess

import pytest

from tests.support.blocks import blocks_of
from tests.support.debian import why_not_installed
from tests.support.launching import as_written, records, write_suite
from tests.support.namespaces import Lab, why_not
from tests.support.processes import LONGEST_S, plain_environment, wait_until

pytestmark = pytest.mark.nightly

[LINE] = blocks_of("docs/launch/mpi.md")
AGENT = """#!/bin/bash
# In place of ssh: HOST COMMAND..., which a shell of that host reads.
host=$1; shift
case $host in
{cases}
*) exit 255 ;;
esac
"""


@pytest.fixture(scope="module")
def lab():
    if reason := why_not() or why_not_installed("mpirun", "openmpi-bin"):
        pytest.skip(f"no Open MPI or network namespaces here: {reason}")
    with Lab(3) as lab:
        yield lab


@pytest.fixture
def start(lab, tmp_path):
    """Starts the line of the page on the first host of the lab, whose log is `tmp_path / "log"`."""
    agent = tmp_path / "agent"
    names = [lab.host_name(host) for host in range(lab.size)]
    cases = (
        f'{name}) exec {shlex.join(lab.inside(host))} bash -c "$*" ;;'
        for host, name in enumerate(names)
    )
    agent.write_text(AGENT.format(cases="\n".join(cases)))
    agent.chmod(0o755)
    suite = write_suite(tmp_path, repeats=12, devices=3)
    line = as_written(LINE.text, suite, tmp_path / "run").replace("n1,n2,n3", ",".join(names))
    line = line.replace("=n1 ", f"={names[0]} ").replace("-x JAX", "-x PYTHONPATH -x JAX")
    # The tests are root.
    root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    environment = plain_environment(OMPI_MCA_plm_rsh_agent=str(agent), **root)

    def start():
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(
                [*lab.inside(0), "bash", "-c", line], env=environment, stdout=log, stderr=log
            )

    return start


def test_a_machine_that_is_lost_ends_all_and_the_same_line_goes_on(lab, start, tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    process = start()
    wait_until(lambda: len(records(out)) >= 3, log.read_text)
    lab.signal(1, signal.SIGKILL)
    assert process.wait(LONGEST_S) != 0, log.read_text()
    assert len(records(out)) < 36
    assert start().wait(LONGEST_S) == 0, log.read_text()
    found = [one for one in records(out) if one["status"] == "passed"]
    assert len(found) == 36
    names = {record["host"]: record["provenance"]["host"]["name"] for record in found}
    assert names == {0: "ob0", 1: "ob1", 2: "ob2"}
