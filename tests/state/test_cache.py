from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from orbax_bench_core.config import ArraySpec, CheckpointConfig, MeshConfig
from orbax_bench_core.state.cache import StateCache
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.fixtures import save_fixture
from orbax_bench_core.state.synthetic import generate

MESH = MeshConfig(mesh_axes=("x",), ici_parallelism={"x": 8})
BYTES = 8 * 16 * 4


def _checkpoint(seed: int = 0, sharding: tuple[str, ...] | None = ("x",)) -> CheckpointConfig:
    spec: dict[str, Any] = {
        "params": {"w": ArraySpec(dtype="float32", shape=(8, 16), sharding=sharding)},
        "step": "int",
    }
    return CheckpointConfig(spec=spec, random_seed=seed)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds of the states that were generated, in order."""
    seeds: list[int] = []

    def counting(spec: Any, *, seed: int, mesh: Mesh | None) -> Any:
        seeds.append(seed)
        return generate(spec, seed=seed, mesh=mesh)

    monkeypatch.setattr("orbax_bench_core.state.cache.generate", counting)
    return seeds


@pytest.mark.slow
def test_a_state_has_its_digest_and_size(mesh8: Mesh) -> None:
    state = StateCache().get(_checkpoint(), MESH, mesh8)
    assert state.digest == digest(state.tree)
    assert state.num_bytes == BYTES


@pytest.mark.slow
def test_defect_4_a_state_is_made_once(mesh8: Mesh, made: list[int]) -> None:
    cache = StateCache()
    first, second = (cache.get(_checkpoint(), MESH, mesh8) for _ in range(2))
    assert made == [0]
    assert _memory(first.tree["params"]["w"]) == _memory(second.tree["params"]["w"])


@pytest.mark.slow
def test_a_state_comes_without_the_host_copies_that_an_earlier_save_made(mesh8: Mesh) -> None:
    cache = StateCache()
    saved, again, other = (
        cache.get(_checkpoint(), MESH, mesh8).tree["params"]["w"] for _ in range(3)
    )
    copy = np.asarray(saved)
    assert np.shares_memory(copy, np.asarray(saved))
    assert not np.shares_memory(copy, np.asarray(again))
    assert np.array_equal(copy, np.asarray(other))


def _memory(array: jax.Array) -> list[int]:
    return [shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards]


@pytest.mark.slow
def test_other_seeds_and_meshes_are_other_states(
    mesh8: Mesh, make_mesh: Callable[..., Mesh], made: list[int]
) -> None:
    cache = StateCache()
    cache.get(_checkpoint(0), MESH, mesh8)
    cache.get(_checkpoint(1), MESH, mesh8)
    cache.get(_checkpoint(0), None, make_mesh(x=4))
    assert made == [0, 1, 0]


@pytest.mark.parametrize(
    "lose", [lambda array: array.delete(), jax.jit(lambda x: x + 1, donate_argnums=0)]
)
def test_a_deleted_or_donated_array_is_made_again(
    mesh8: Mesh, made: list[int], lose: Callable[[jax.Array], Any]
) -> None:
    cache = StateCache()
    lose(cache.get(_checkpoint(), MESH, mesh8).tree["params"]["w"])
    state = cache.get(_checkpoint(), MESH, mesh8)
    assert made == [0, 0]
    assert digest(state.tree) == state.digest


def test_a_tree_that_a_benchmark_changed_is_whole_again(mesh8: Mesh) -> None:
    cache = StateCache()
    state = cache.get(_checkpoint(), MESH, mesh8)
    del state.tree["params"]["w"]
    state.digest.clear()
    again = cache.get(_checkpoint(), MESH, mesh8)
    assert list(again.tree["params"]) == ["w"]
    assert sorted(again.digest) == ["params.w", "step"]


def test_the_least_recently_used_goes_first(mesh8: Mesh, made: list[int]) -> None:
    cache = StateCache(max_bytes=2 * BYTES)
    for seed in (0, 1, 0, 2):
        cache.get(_checkpoint(seed), MESH, mesh8)
    assert made == [0, 1, 2]
    cache.get(_checkpoint(0), MESH, mesh8)
    assert made == [0, 1, 2]
    cache.get(_checkpoint(1), MESH, mesh8)
    assert made == [0, 1, 2, 1]


@pytest.mark.slow
def test_replicas_count_towards_the_limit(mesh8: Mesh, made: list[int]) -> None:
    cache = StateCache(max_bytes=9 * BYTES)
    cache.get(_checkpoint(0), MESH, mesh8)
    cache.get(_checkpoint(1, sharding=None), MESH, mesh8)
    cache.get(_checkpoint(2), MESH, mesh8)
    cache.get(_checkpoint(0), MESH, mesh8)
    assert made == [0, 1, 2, 0]


def test_a_state_above_the_limit_is_made_and_kept_alone(mesh8: Mesh, made: list[int]) -> None:
    cache = StateCache(max_bytes=1)
    for _ in range(2):
        cache.get(_checkpoint(), MESH, mesh8)
    assert made == [0]


def test_half_of_the_available_memory_is_the_default_limit(
    mesh8: Mesh, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 4 * BYTES
    cache = StateCache()
    monkeypatch.setattr(
        "orbax_bench_core.state.cache.available_bytes",
        lambda: total - sum(entry.held_bytes for entry in cache._entries.values()),
    )
    for seed in (0, 1, 2, 1, 0):
        cache.get(_checkpoint(seed), MESH, mesh8)
    assert made == [0, 1, 2, 0]


@pytest.mark.slow
def test_a_loaded_state_serves_every_mesh(
    tmp_path: Path, mesh8: Mesh, make_mesh: Callable[..., Mesh]
) -> None:
    save_fixture({"w": jax.numpy.arange(8)}, str(tmp_path / "c"))
    cache, checkpoint = StateCache(), CheckpointConfig(path=str(tmp_path / "c"))
    first = cache.get(checkpoint, MESH, mesh8)
    second = cache.get(checkpoint, None, make_mesh(x=4))
    assert _memory(first.tree["w"]) == _memory(second.tree["w"])
    assert first.num_bytes == 64
