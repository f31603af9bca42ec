"""Dispatch of functions to the hosts of devices, which writes no file."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs
from orbax_bench_core.measure import Metrics

_DISPATCHERS = "multihost_dispatchers"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultihostDispatchersOptions(interface.BenchmarkOptions):
    """Options of `multihost_dispatchers`.

    Attributes:
        use_colocated: Dispatch by colocated Python. Orbax has no other way, so false is dropped.
        device_count: How many devices `dispatch_with_dummy_result_array` runs on; null takes all.
    """

    use_colocated: interface.Sweepable[bool] = True
    device_count: interface.Sweepable[int | None] = None

    def is_valid(self) -> bool:
        """There is only one dispatcher."""
        return self.use_colocated


@interface.benchmark_options(MultihostDispatchersOptions)
class MultihostDispatchers(interface.BenchmarksGenerator[MultihostDispatchersOptions]):
    """Measures three kinds of dispatch, each until its result is ready.

    `dispatch_without_result_specs` sends the array of the checkpoint_config called `array` and gets
    nothing back; `dispatch_with_dummy_result_array` sends next to nothing;
    `dispatch_with_result_specs` gets the array back, which is verified outside the clock. It needs
    cloudpickle.
    """

    def test_fn(
        self, context: interface.TestContext[MultihostDispatchersOptions]
    ) -> interface.TestResult:
        """Dispatches three times."""
        import jax

        metrics, options = Metrics(), context.options
        interface.optional_module("cloudpickle", "pathways", _DISPATCHERS)
        dispatchers = needs.require_orbax_module("_src.multihost.dispatchers", _DISPATCHERS)
        array = jax.block_until_ready(needs.require_leaf(context, "array", _DISPATCHERS))
        dispatcher = dispatchers.ColocatedPythonDispatcher()
        with metrics.measure("dispatch_without_result_specs", num_bytes=array.nbytes):
            done = dispatcher.dispatch(_nothing, input_arrays=array)
            jax.block_until_ready(done)
        _check_done(done)
        small = dispatchers.get_dummy_input_array(_devices(options.device_count))
        jax.block_until_ready(small)
        with metrics.measure("dispatch_with_dummy_result_array"):
            done = dispatcher.dispatch(_nothing, input_arrays=small)
            jax.block_until_ready(done)
        _check_done(done)
        specs = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)
        with metrics.measure("dispatch_with_result_specs", num_bytes=array.nbytes):
            returned = dispatcher.dispatch(_same, input_arrays=array, result_specs=specs)
            jax.block_until_ready(returned)
        context.verify({**context.pytree, "array": returned})
        return interface.TestResult(metrics=metrics)


def _devices(count: Any) -> list[Any]:
    import jax

    devices = jax.devices()
    if count is not None and not 1 <= count <= len(devices):
        raise interface.UnmetNeed(
            f"device_count: {count} needs that many devices; {len(devices)} are here"
        )
    return devices[:count]


def _nothing(array: Any) -> None:
    del array


def _same(array: Any) -> Any:
    return array


def _check_done(done: Any) -> None:
    import numpy as np

    if not all(np.asarray(shard.data).item() for shard in done.addressable_shards):
        raise interface.VerificationError("a dispatched function did not report that it had run")
