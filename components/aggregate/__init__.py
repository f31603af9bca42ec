"""The aggregate component."""

from orbax_bench_components.aggregate.component import aggregate as aggregate
