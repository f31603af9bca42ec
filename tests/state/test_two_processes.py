"""The same code in two JAX processes of four devices each."""

from typing import Any

import pytest

from orbax_bench_core.config import ArraySpec
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.synthetic import generate
from tests.support.processes import say_together

WORKER = """
import json, sys
import jax
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
import numpy
from orbax_bench_core.config.checkpoint import ArraySpec, CheckpointConfig
from orbax_bench_core.config.mesh import MeshConfig
from orbax_bench_core.state.cache import StateCache
from orbax_bench_core.state.digests import digest, partial_digest
from orbax_bench_core.state.fixtures import save_fixture
from orbax_bench_core.state.loading import load_checkpoint
from orbax_bench_core.state.mesh import build_mesh

config = MeshConfig(mesh_axes=("a", "b"), ici_parallelism={"a": 4}, dcn_parallelism={"b": 2})
mesh = build_mesh(config)
spec = {
    "sharded": ArraySpec(dtype="bfloat16", shape=(16, 24), sharding=("a", "b")),
    "across": ArraySpec(dtype="float32", shape=(16, 24), sharding=("b",)),
    "replicated": ArraySpec(dtype="int8", shape=(16,)),
    "step": "int",
}
state = StateCache().get(CheckpointConfig(spec=spec, random_seed=3), config, mesh)
save_fixture(state.tree, sys.argv[3])
print(json.dumps({
    "processes": [[d.process_index for d in row] for row in mesh.devices.tolist()],
    "digest": state.digest,
    "loaded": digest(load_checkpoint(CheckpointConfig(path=sys.argv[3]))),
    "lanes": {name: sums.lanes for name, sums in partial_digest(state.tree).items()},
}))
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return say_together(WORKER, str(tmp_path_factory.mktemp("two") / "checkpoint"))


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """The digest of the same spec in one process on one device."""
    spec: dict[str, Any] = {
        "sharded": ArraySpec(dtype="bfloat16", shape=(16, 24)),
        "across": ArraySpec(dtype="float32", shape=(16, 24)),
        "replicated": ArraySpec(dtype="int8", shape=(16,)),
        "step": "int",
    }
    return digest(generate(spec, seed=3, mesh=None))


@pytest.mark.slow
def test_values_are_those_of_one_process(
    reports: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    assert [report["digest"] for report in reports] == [expected, expected]


@pytest.mark.slow
def test_a_load_into_another_layout_has_the_same_digest(
    reports: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    assert [report["loaded"] for report in reports] == [expected, expected]


@pytest.mark.slow
def test_a_trailing_dcn_axis_crosses_the_processes(reports: list[dict[str, Any]]) -> None:
    assert reports[0]["processes"] == [[0, 1]] * 4
