"""Measured blocks: `with metrics.measure("save"): ...` captures time, memory, events and I/O."""

from orbax_bench_core.measure.metrics import Metrics, default_metrics
from orbax_bench_core.measure.sample import Sample

__all__ = ["Metrics", "Sample", "default_metrics"]
