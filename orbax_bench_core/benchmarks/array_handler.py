"""Write and read of one array with Orbax's `ArrayHandler` alone, step by step."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support.needs import require_leaf, require_orbax_module
from orbax_bench_core.benchmarks.support.options import ReplicaFolderOptions, await_all_hosts
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import jax

_NAME = "array"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArrayHandlerOptions(ReplicaFolderOptions):
    """Options of `array_handler`.

    Attributes:
        use_ocdbt: Store the array in OCDBT, a database of few files, rather than in a folder.
        use_zarr3: Store it as Zarr v3 rather than v2.
        use_colocated_python: Have the hosts of the devices write and read, by colocated Python.
        use_replica_parallel: Have each replica write a part of a replicated array.
        enable_replica_parallel_separate_folder: Give each replica's part a folder of its own; needs
            use_replica_parallel and use_ocdbt.
        use_metadata_store: Also write, and read, Orbax's own metadata of arrays.
    """

    use_ocdbt: interface.Sweepable[bool] = True
    use_zarr3: interface.Sweepable[bool] = False
    use_colocated_python: interface.Sweepable[bool] = False
    use_replica_parallel: interface.Sweepable[bool] = False
    enable_replica_parallel_separate_folder: interface.Sweepable[bool] = False
    use_metadata_store: interface.Sweepable[bool] = False

    def handler(self) -> Any:
        """Makes the handler that these options describe."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint._src.metadata import array_metadata_store

        more = {}
        if self.use_colocated_python:
            interface.optional_module("cloudpickle", "pathways", "use_colocated_python: true")
            dispatchers = require_orbax_module("_src.multihost.dispatchers", "use_colocated_python")
            more["dispatcher"] = dispatchers.ColocatedPythonDispatcher()
        return ocp.type_handlers.ArrayHandler(
            use_replica_parallel=self.use_replica_parallel,
            enable_replica_parallel_separate_folder=self.enable_replica_parallel_separate_folder,
            array_metadata_store=array_metadata_store.Store() if self.use_metadata_store else None,
            **more,
        )


@interface.benchmark_options(ArrayHandlerOptions)
class ArrayHandler(interface.BenchmarksGenerator[ArrayHandlerOptions]):
    """Measures `serialize`, `merge_ocdbt`, `metadata_validation` and `deserialize` of one array.

    The checkpoint_config must have an array called `array`, and that is all it needs. Without OCDBT
    there is nothing to merge. What was read is verified outside the clock.
    """

    def test_fn(self, context: interface.TestContext[ArrayHandlerOptions]) -> interface.TestResult:
        """Writes, merges, reads the metadata, and reads."""
        import asyncio

        import jax
        import orbax.checkpoint as ocp

        metrics, options = Metrics(), context.options
        array = jax.block_until_ready(require_leaf(context, _NAME, "array_handler"))
        handler, info = options.handler(), _info(context, options)

        async def serialize() -> None:
            futures = await handler.serialize([array], [info], [ocp.type_handlers.SaveArgs()])
            await asyncio.gather(*(asyncio.to_thread(future.result) for future in futures))

        with metrics.measure("serialize", num_bytes=array.nbytes):
            asyncio.run(serialize())
            await_all_hosts("serialized")
        if options.use_ocdbt:
            with metrics.measure("merge_ocdbt"):
                if jax.process_index() == 0:
                    asyncio.run(
                        ocp.type_handlers.merge_ocdbt_per_process_files(
                            context.path, info.ts_context, options.use_zarr3
                        )
                    )
                await_all_hosts("merged")
        with metrics.measure("metadata_validation"):
            (metadata,) = asyncio.run(handler.metadata([info]))
        _check(metadata, array)
        arguments = ocp.type_handlers.ArrayRestoreArgs(
            sharding=array.sharding, global_shape=array.shape, dtype=array.dtype
        )
        context.prepare_load("deserialize", context.path)
        with metrics.measure("deserialize", num_bytes=array.nbytes):
            (restored,) = jax.block_until_ready(
                asyncio.run(handler.deserialize([info], [arguments]))
            )
        context.verify({**context.pytree, _NAME: restored})
        return interface.TestResult(metrics=metrics)


def _info(context: interface.TestContext, options: ArrayHandlerOptions) -> Any:
    import orbax.checkpoint as ocp

    return ocp.type_handlers.ParamInfo(
        name=_NAME,
        parent_dir=context.path,
        use_zarr3=options.use_zarr3,
        is_ocdbt_checkpoint=options.use_ocdbt,
        ts_context=ocp.type_handlers.get_ts_context(use_ocdbt=options.use_ocdbt),
        enable_pinned_host_transfer=False,
        value_typestr="jax.Array",
        raise_array_data_missing_error=True,
    )


def _check(metadata: Any, array: jax.Array) -> None:
    found = (metadata.shape, metadata.dtype)
    if found != (array.shape, array.dtype):
        raise interface.VerificationError(
            f"metadata of {_NAME!r} say {found}, saved was {(array.shape, array.dtype)}"
        )
    sharding = None if metadata.sharding is None else metadata.sharding.to_jax_sharding()
    if sharding != array.sharding:
        raise interface.VerificationError(
            f"metadata of {_NAME!r} say it was laid out as {sharding}, it was {array.sharding}"
        )
