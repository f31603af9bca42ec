"""State as PyTorch tensors on ranks."""

from orbax_bench_core.state.torch.state import TorchLayout

__all__ = [
    "TorchLayout",
]
