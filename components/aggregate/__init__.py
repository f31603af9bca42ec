"""Puts the records of a sweep together."""

from orbax_bench_components.aggregate.component import aggregate as aggregate
