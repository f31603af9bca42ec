"""Save of a Flax NNX model on one number of devices, and restore onto another."""

import dataclasses
from typing import Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions, measure_save
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class NnxRestoreOptions(SaveRestoreOptions):
    """Options of `nnx_restore`, beside those of `save_restore`.

    Attributes:
        inputs: `module:function`; the function takes nothing and returns the arguments of a call of
            the model, as a tuple.
        save_devices: How many of the mesh's devices hold the model while it is saved; null for all.
        restore_devices: How many hold it once it is restored; null for all.
    """

    inputs: str
    save_devices: interface.Sweepable[int | None] = None
    restore_devices: interface.Sweepable[int | None] = None


@interface.benchmark_options(NnxRestoreOptions)
class NnxRestore(interface.BenchmarksGenerator[NnxRestoreOptions]):
    """Measures a save from one mesh and a `load` onto another, for a model of `nnx:`.

    The operations of the save are those of `save_restore`. Outside the clock the restored state is
    verified, merged into the model again, and the outputs of both models are compared.
    """

    def test_fn(self, context: interface.TestContext[NnxRestoreOptions]) -> interface.TestResult:
        """Runs one save and one load."""
        import jax

        from orbax_bench_core.state import first_devices, nnx, orbax_api, tree_bytes

        options = context.options
        factory = None if context.checkpoint is None else context.checkpoint.nnx
        if factory is None or context.mesh is None:
            raise interface.UnmetNeed(
                "nnx_restore needs a model and a mesh: a checkpoint_config with "
                "`nnx: module:factory`, and a mesh_config with all devices that take part"
            )
        mesh, total = context.mesh, context.mesh.size
        # An option has one value here; its list form only means a sweep.
        saved_from = first_devices(mesh, _count(options.save_devices, total))
        restored_on = first_devices(mesh, _count(options.restore_devices, total))
        metrics, path = Metrics(), context.path / "ckpt"
        tree = nnx.onto(context.pytree, saved_from)
        target = nnx.target_on(context.pytree, restored_on)
        with options.orbax_context():
            measure_save(metrics, context, path, tree)
            context.prepare_load("load", path)
            with metrics.measure("load", options.collectors, num_bytes=tree_bytes(tree)):
                restored = jax.block_until_ready(orbax_api.load(path, target))
        context.verify(restored)
        inputs = nnx.load_object(options.inputs)()
        _check_outputs(nnx.merge(factory, tree)(*inputs), nnx.merge(factory, restored)(*inputs))
        return interface.TestResult(metrics=metrics)


def _count(option: Any, otherwise: int) -> int:
    return otherwise if option is None else int(option)


def _check_outputs(before: Any, after: Any) -> None:
    """Compares what two models return; another mesh adds in another order, so not bit by bit."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from orbax_bench_core.state import nnx

    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    for index, (expected, found) in enumerate(pairs):
        precision = float(jnp.finfo(expected.dtype).eps) if _is_float(expected) else 0.0
        wanted, got = (nnx.whole(output).astype(np.float64) for output in (expected, found))
        bound = precision**0.5 * (np.abs(wanted).max(initial=0.0) or 1.0)
        if wanted.shape != got.shape or not np.abs(wanted - got).max(initial=0.0) <= bound:
            raise interface.VerificationError(
                f"output {index} of the restored model differs from that of the saved one"
            )


def _is_float(array: Any) -> bool:
    import jax.numpy as jnp

    return bool(jnp.issubdtype(array.dtype, jnp.floating))
