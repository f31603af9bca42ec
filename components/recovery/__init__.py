"""The recovery component."""

from orbax_bench_components.answers import recovery as recovery
