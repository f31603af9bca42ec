"""The token and the places of hosts, which nothing that is started or written ever has."""

from pathlib import Path

import pytest

from tests.support.cluster import Hosts

from .test_hosts import SUITE, begun

pytestmark = pytest.mark.slow

TOKEN = "7f3c9a" * 8
PLACES = {
    "SLURM_STEP_NODELIST": "planted-node-[1-2]",
    "SLURM_NTASKS": "2",
    "OMPI_COMM_WORLD_RANK_PLANTED": "planted-rank",
    "JOB_COMPLETION_INDEX": "planted-index",
}
NAMES = (
    "ORBAX_BENCH_TOKEN",
    "JAX_COORDINATOR_ADDRESS",
    "JAX_COORDINATOR_PORT",
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "OMPI_",
    "JOB_COMPLETION_INDEX",
)


@pytest.fixture
def running(tmp_path):
    """Starts two hosts, and returns them once their workers are inside a repeat."""
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE.format(options="lasts_s: 4", repeats=1))
    words = ("run", suite, "-o", tmp_path / "out", "--no-lock", "--no-limits")
    with Hosts(tmp_path, *words) as hosts:

        def start(**variables):
            started = [
                hosts.start(rank, SLURM_PROCID=str(rank), **PLACES, **variables) for rank in (0, 1)
            ]
            hosts.wait_for(lambda: begun(tmp_path))
            return hosts, started

        yield start


def seen(process, what):
    return Path(f"/proc/{process.pid}/{what}").read_bytes().decode(errors="replace")


def written(folder):
    """Returns the text of every file below a folder, by its path, without the token's own."""
    return {
        path: path.read_bytes().decode(errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "cluster"
    }


def check(hosts, started, token, folder):
    workers = [worker for process in started for worker in hosts.workers(process)]
    assert len(workers) == 2
    for worker in workers:
        variables = seen(worker, "environ").split("\0")
        assert [one for one in variables if one.startswith(NAMES)] == []
        assert token not in seen(worker, "environ")
    for process in (*started, *workers):
        assert token not in seen(process, "cmdline")
    during = written(folder)
    assert hosts.codes(started) == [0, 0], hosts.said(0)
    for files in (during, written(folder)):
        assert len(files) > 5
        assert [path for path, text in files.items() if token in text] == []
        places = [path for path, text in files.items() if "planted" in text]
        assert places == []


@pytest.mark.nightly
@pytest.mark.parametrize("given", [{"ORBAX_BENCH_TOKEN": TOKEN}, {}], ids=["given", "made"])
def test_a_token_is_nowhere_but_in_the_environment_of_hosts_or_in_its_file(
    running, tmp_path, given
):
    hosts, started = running(**given)
    file = tmp_path / "out" / "cluster" / "token"
    token = TOKEN if given else file.read_text()
    assert len(token) == (48 if given else 64)
    assert (token in seen(started[1], "environ")) == bool(given)
    check(hosts, started, token, tmp_path)
    assert not file.parent.exists()
