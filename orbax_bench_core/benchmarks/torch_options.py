"""What the benchmarks of PyTorch have in common."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import BenchmarkOptions, TestContext
from orbax_bench_core.measure import default_metrics

if TYPE_CHECKING:
    import torch

    from orbax_bench_core.state.torch_state import TorchLayout


@dataclasses.dataclass(frozen=True, kw_only=True)
class TorchOptions(BenchmarkOptions):
    """Options of a benchmark of PyTorch.

    Attributes:
        sync_files: Have every file reach stable storage before a save ends, as Orbax always does;
            in an object store they always are.
        join_local_shards: Where a process has several devices, have its shards as one tensor; false
            refuses, because Orbax then saves and loads other shards than PyTorch.
        metric_tracemalloc_enabled: Also trace Python allocations, which slows the operation down.
    """

    sync_files: bool | list[bool] = True
    join_local_shards: bool | list[bool] = False
    metric_tracemalloc_enabled: bool | list[bool] = False

    @property
    def collectors(self) -> list[str]:
        """The collectors that measure each operation."""
        return default_metrics() + ["tracemalloc"] * bool(self.metric_tracemalloc_enabled)


@dataclasses.dataclass(frozen=True)
class TorchData:
    """What one repeat saves and loads.

    Attributes:
        tree: As JAX has it; the repeat's own data, or those of a reference checkpoint.
        layout: How PyTorch has it.
        device: Where the tensors of this process go.
        num_bytes: Bytes of all arrays, replicas once.
        expected: Digest of a tree that is not the repeat's own data; None for those.
    """

    tree: Any
    layout: TorchLayout
    device: torch.device
    num_bytes: int
    expected: Any

    @classmethod
    def of(cls, context: TestContext, benchmark: str, reference: str | None = None) -> TorchData:
        """Finds out what a repeat saves, and makes it ready.

        Args:
            context: The repeat.
            benchmark: Who asks, for messages.
            reference: Directory of safetensors files to take in place of the repeat's data.

        Raises:
            UnmetNeed: There is nothing to save, or no PyTorch here that can hold it.
        """
        import jax

        from orbax_bench_core.benchmarks import needs
        from orbax_bench_core.benchmarks.target import load_target
        from orbax_bench_core.benchmarks.torch_group import device_of_rank
        from orbax_bench_core.benchmarks.torch_reference import reference_tree
        from orbax_bench_core.state.digest import digest
        from orbax_bench_core.state.size import tree_bytes
        from orbax_bench_core.state.torch_state import TorchLayout

        options = context.options
        assert isinstance(options, TorchOptions)
        device = device_of_rank(benchmark)
        if reference is None:
            tree, expected = needs.tree(context, benchmark), None
        else:
            tree = reference_tree(reference)
            expected = None if context.verifier is None else digest(tree)
        layout = TorchLayout(load_target(tree), device, join=bool(options.join_local_shards))
        return cls(jax.block_until_ready(tree), layout, device, tree_bytes(tree), expected)

    def local(self) -> dict[str, Any]:
        """Returns what this process saves, as tensors that are ready on their device."""
        from orbax_bench_core.benchmarks.torch_group import synchronize

        tensors = self.layout.local(self.tree)
        synchronize(self.device)
        return tensors

    def free_if_scarce(self) -> None:
        """Frees what was saved, where what is loaded would not fit beside it."""
        from orbax_bench_core.benchmarks.freeing import delete_if_scarce

        delete_if_scarce(self.tree)

    def verify(self, context: TestContext, tensors: dict[str, Any]) -> None:
        """Checks what was loaded; call it outside any measured block.

        Args:
            context: The repeat.
            tensors: The state dict of this process.

        Raises:
            VerificationError: A value differs.
        """
        if context.verifier is not None:
            context.verify(self.layout.to_jax(tensors), self.expected)
