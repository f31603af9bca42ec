"""Names and sizes of leaves, and memory that this process may still take."""

from collections.abc import Callable
from types import SimpleNamespace

import jax
import numpy as np
import psutil
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.state import tree
from orbax_bench_core.state.tree import (
    StateError,
    available_bytes,
    held_bytes,
    load_fits,
    named_leaves,
)


def test_cpu_devices_share_the_memory_of_the_host() -> None:
    free = psutil.virtual_memory().available
    assert available_bytes() == pytest.approx(free, rel=0.2)


def test_accelerators_report_their_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {"bytes_limit": 100, "bytes_in_use": 30}
    devices = [SimpleNamespace(memory_stats=lambda: stats) for _ in range(2)]
    monkeypatch.setattr(jax, "local_devices", lambda: devices)
    assert available_bytes() == 140


@pytest.mark.parametrize(("spec", "copies"), [(PartitionSpec("x"), 2), (PartitionSpec(), 8)])
def test_replicas_are_held_as_often_as_they_exist(
    make_mesh: Callable[..., Mesh], spec: PartitionSpec, copies: int
) -> None:
    sharding = NamedSharding(make_mesh(x=4, y=2), spec)
    tree = {"w": jax.device_put(np.zeros((4, 5), np.float32), sharding), "step": 3}
    assert held_bytes(tree) == copies * 80


@pytest.mark.parametrize(("free", "fits"), [(3 << 20, True), (2 << 20, False)])
def test_a_load_on_cpus_counts_the_bytes_that_are_read_as_well(
    monkeypatch: pytest.MonkeyPatch, free: int, fits: bool
) -> None:
    monkeypatch.setattr(tree, "free_memory_bytes", lambda: free)
    assert load_fits({"w": jax.device_put(np.zeros(1 << 20, np.int8))}) is fits


def test_a_load_on_accelerators_needs_room_for_the_arrays_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats = {"bytes_limit": 3 << 20, "bytes_in_use": 1 << 20}
    devices = [SimpleNamespace(memory_stats=lambda: stats)]
    held = {"w": jax.device_put(np.zeros(2 << 20, np.int8))}
    monkeypatch.setattr(jax, "local_devices", lambda: devices)
    assert load_fits(held)


def test_equal_paths_are_refused() -> None:
    with pytest.raises(StateError, match=r"two leaves are called 'a\.b'"):
        named_leaves({"a.b": 1, "a": {"b": 2}})
