"""The inspect-checkpoint component."""

from orbax_bench_components.answers import inspect_checkpoint as inspect_checkpoint
