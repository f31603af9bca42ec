"""The soak component."""

from orbax_bench_components.answers import soak as soak
