"""The published guide's cluster mode: the same command on every host, with JAX's variables."""

import json
import re

import pytest

from tests.support.blocks import blocks_of, words_of
from tests.support.cluster import Hosts

pytestmark = pytest.mark.nightly

# A suite of the guide says nothing of hosts.
SUITE = """
suite_name: guide
num_repeats: 2
checkpoint_config:
  spec:
    sharded: {dtype: float32, shape: [64, 32], sharding: [x, null]}
    replicated: {dtype: float32, shape: [64]}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def words_on_the_page():
    """The command of the page on hosts, after checking that it exports what `Hosts` sets."""
    block = next(one for one in blocks_of("docs/hosts.md") if one.language == "sh")
    *exported, command = block.commands
    assert [re.search(r"export (\w+)=", line)[1] for line in exported] == [
        "JAX_COORDINATOR_ADDRESS",
        "JAX_NUM_PROCESSES",
        "JAX_PROCESS_ID",
    ]
    _, *words = words_of(command)
    places = {"suite.yaml": "{suite}", "/shared/run": "{out}"}
    return [places.get(word, word) for word in words]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("orbax_bench_core.run_benchmarks", ["--config_file={suite}", "--output_directory={out}"]),
        ("orbax_bench_core.cli", words_on_the_page()),
    ],
)
def test_the_guides_command_on_two_hosts_measures_one_cluster(tmp_path, program, words):
    suite, out = tmp_path / "suite.yaml", tmp_path / "out"
    suite.write_text(SUITE)
    command = [word.format(suite=suite, out=out) for word in words]
    with Hosts(tmp_path, *command, "--no-limits", "--no-lock", cli=program) as hosts:
        port = hosts.address.rpartition(":")[2]
        started = [hosts.start(rank, JAX_COORDINATOR_PORT=port) for rank in (0, 1)]
        assert hosts.codes(started) == [0, 0], hosts.said(0) + hosts.said(1)
        assert hosts.orphans() == []
    for repeat in range(2):
        paths = list(out.glob(f"records/*/repeat_{repeat}/host_*.json"))
        found = {one["host"]: one for one in map(json.loads, (p.read_text() for p in paths))}
        assert sorted(found) == [0, 1]
        for record in found.values():
            assert record["status"] == "passed"
            assert record["provenance"]["devices"]["processes"] == 2
            assert record["provenance"]["devices"]["count"] == 4
            assert record["state"]["verified"] == "saved"
    assert "host 1 (" in hosts.said(0)
    assert json.loads((out / "run.json").read_text())["status"] == "complete"
