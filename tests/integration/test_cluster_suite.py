"""A suite that only process 0 has: its folder travels, and what is missing elsewhere is named."""

import json
import os

import pytest

from tests.support.cluster import Hosts
from tests.support.processes import REAL_CLI

from .test_object_store_run import HERE

pytestmark = pytest.mark.slow

SUITE = """
suite_name: travels
num_repeats: 1
execution: {warmups: 0, retries: 0}
benchmarks: [{generator: MODULE.Steady, options: {}}]
"""


@pytest.fixture
def start(tmp_path):
    """Starts two hosts, of which the first has the suite and the other an empty folder."""
    made = []

    def start(module, out, **variables):
        folders = [tmp_path / "suites", tmp_path / "elsewhere"]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        (folders[0] / "suite.yaml").write_text(SUITE.replace("MODULE", module))
        words = ("run", "suite.yaml", "-o", out, "--no-limits", "--no-lock", "--host-wait", "5")
        made.append(Hosts(tmp_path, *words, cli=REAL_CLI))
        own = variables.pop("own", {})
        started = [
            made[-1].start(rank, folder=folders[rank], **variables, **({} if rank else own))
            for rank in (0, 1)
        ]
        return made[-1], started

    yield start
    for hosts in made:
        hosts.__exit__()


def bring(tmp_path, module):
    """Puts a benchmark class beside the suite."""
    (tmp_path / "suites").mkdir()
    text = (HERE / "steady.py").read_text()
    (tmp_path / "suites" / f"{module}.py").write_text(text)


@pytest.mark.nightly
def test_a_host_without_the_suite_takes_the_copy_of_process_0(start, tmp_path):
    bring(tmp_path, "beside")
    out = tmp_path / "out"
    hosts, started = start("beside", out)
    assert hosts.codes(started) == [0, 0], hosts.said(0) + hosts.said(1)
    assert "suite.yaml is not on this host: taking the copy of process 0" in hosts.said(1)
    records = [json.loads(path.read_text()) for path in out.rglob("host_*.json")]
    assert sorted(record["host"] for record in records) == [0, 1]
    assert not (out / "cluster").exists()


@pytest.mark.nightly
def test_the_copy_travels_through_a_bucket(start, tmp_path, emulator):
    bring(tmp_path, "beside")
    new = {name: text for name, text in emulator.items() if os.environ.get(name) != text}
    new |= {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_AUTH_TOKEN_FOR_TESTING": "abc"}
    hosts, started = start("beside", "gs://bench-bucket/out", **new)
    assert hosts.codes(started) == [0, 0], hosts.said(0) + hosts.said(1)
    bucket = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / "out"
    assert len(list(bucket.rglob("host_*.json"))) == 2
