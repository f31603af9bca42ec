"""The finish component."""

from orbax_bench_components.finish.component import finish as finish
