"""The soak component."""

from orbax_bench_components.soak.component import soak as soak
