"""Definition of a metric."""

from __future__ import annotations

from orbax_bench_core.measure.definition import Metric


def test_namespace_is_the_name_up_to_the_slash() -> None:
    metric = Metric("6_tensorstore/a_b", "count", "none", "text", "tensorstore")

    assert metric.namespace == "6_tensorstore"
