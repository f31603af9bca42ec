"""Events of Orbax and JAX."""

import threading
import time

import jax
import jax.monitoring
import jax.numpy as jnp
import pytest
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.collectors.jax_monitoring import JaxMonitoring

BLOCKING = "/jax/orbax/write/blocking_duration_secs"
RATE = "/jax/checkpoint/read/gbytes_per_sec"


def duration(event, *values):
    for value in values:
        jax.monitoring.record_event_duration_secs(event, value)


def scalar(event, *values):
    for value in values:
        jax.monitoring.record_scalar(event, value)


def occur(event, times=1):
    for _ in range(times):
        jax.monitoring.record_event(event)


def collect(operation):
    collector = JaxMonitoring()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


REPEATED = {
    "2_save_breakdown/blocking_s": 3.5,
    "2_save_breakdown/blocking_s_count": 3,
    "2_save_breakdown/blocking_s_max": 2.0,
    "2_save_breakdown/blocking_s_last": 1.0,
}


@pytest.mark.parametrize(
    ("happen", "event", "values", "expected"),
    [
        pytest.param(duration, BLOCKING, [0.5], {"2_save_breakdown/blocking_s": 0.5}, id="once"),
        pytest.param(duration, BLOCKING, [0.5, 2.0, 1.0], REPEATED, id="defect 10: repeated"),
        pytest.param(
            occur,
            "/jax/orbax/write/success",
            [3],
            {"2_save_breakdown/success_count": 3},
            id="discrete",
        ),
        pytest.param(scalar, "/jax/orbax/write/start_time", [1.7e12], {}, id="defect 22: a moment"),
        pytest.param(
            duration,
            "/jax/orbax/new/thing_secs",
            [1.0],
            {"9_other/orbax_new_thing_secs": 1.0},
            id="new",
        ),
    ],
)
def test_events_become_metrics(happen, event, values, expected):
    assert collect(lambda: happen(event, *values)) == expected


def test_a_repeated_rate_is_its_last_value():
    found = collect(lambda: scalar(RATE, 4.0, 9.0, 1.0))

    assert found["4_throughput/load_total_gbps"] == 1.0


def test_the_hit_rate_follows_from_hits_and_misses_where_there_are_any():
    def operation():
        occur("/jax/compilation_cache/cache_hits", 3)
        occur("/jax/compilation_cache/cache_misses")

    assert collect(operation)["8_jax/cache_hit_rate"] == 0.75
    found = collect(lambda: occur("/jax/compilation_cache/compile_requests_use_cache"))
    assert "8_jax/cache_hit_rate" not in found


def test_events_of_other_threads_count_for_every_open_block():
    metrics = Metrics()

    with metrics.measure("outer"), metrics.measure("inner"):
        thread = threading.Thread(target=duration, args=(BLOCKING, 1.5))
        thread.start()
        thread.join()

    values = {
        name: metrics.results[f"{name}_2_save_breakdown/blocking_s"][0]
        for name in ("outer", "inner")
    }
    assert values == {"outer": 1.5, "inner": 1.5}


def test_events_after_the_block_do_not_count():
    collector = JaxMonitoring()
    collector.start()
    collector.stop()
    duration(BLOCKING, 1.0)

    assert collector.stop() == []


def test_compilation_is_a_duration_not_a_moment():
    began = time.perf_counter()
    found = collect(lambda: jax.jit(lambda x: x * 3)(jnp.ones(5)).block_until_ready())

    assert 0 < found["8_jax/backend_compile_s"] < time.perf_counter() - began


@pytest.fixture(scope="module")
def saved_and_loaded(tmp_path_factory):
    """Real v1 saves and a load of two sharded float32 arrays of 1 MiB and 3 MiB."""
    path = tmp_path_factory.mktemp("checkpoint")
    mesh = jax.make_mesh((8,), ("x",))
    sharding = jax.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    tree = {
        name: jax.device_put(jnp.zeros(mib * 2**18, jnp.float32), sharding)
        for name, mib in (("a", 1), ("b", 3))
    }
    metrics = Metrics()
    with metrics.measure("save"):
        ocp.save(path / "sync", tree)
    with metrics.measure("save_async"):
        ocp.save_async(path / "async", tree).result()
    with metrics.measure("load"):
        ocp.load(path / "sync", jax.tree.map(ocp.arrays.to_shape_dtype_struct, tree))
    return metrics


def test_defect_10_array_sizes_of_a_real_save_add_up(saved_and_loaded):
    size = saved_and_loaded.results["save_5_inventory/sharded_array_gb"]

    assert size == (4 / 1024, "GiB")


def test_real_saves_and_loads_have_their_breakdown_and_every_event_a_home(saved_and_loaded):
    for key in (
        "save_2_save_breakdown/blocking_s",
        "save_2_save_breakdown/total_s",
        "save_4_throughput/save_total_gbps",
        "save_async_2_save_breakdown/blocking_async_s",
        "save_async_2_save_breakdown/total_async_s",
        "load_3_load_breakdown/total_s",
        "load_4_throughput/load_total_gbps",
    ):
        assert saved_and_loaded.results[key][0] > 0, key
    homeless = {one.metric for one in saved_and_loaded.samples if one.metric.startswith("9_other")}

    assert homeless == set()
