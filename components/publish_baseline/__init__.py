"""The publish-baseline component."""

from orbax_bench_components.publish_baseline.component import publish_baseline as publish_baseline
