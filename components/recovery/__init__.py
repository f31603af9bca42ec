"""The recovery component."""

from orbax_bench_components.recovery.component import recovery as recovery
