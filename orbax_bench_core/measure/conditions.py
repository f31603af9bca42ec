"""Metrics of the conditions that an operation met, taken just before it."""

from __future__ import annotations

from orbax_bench_core.measure.definition import Metric

RESIDENT_SHARE = Metric(
    name="6_io/resident_share_before",
    unit="ratio",
    better="none",
    description=(
        "Share of the checkpoint's pages that were in the page cache when the load began, by "
        "mincore; 1 is warm, 0 is cold"
    ),
    collector="conditions",
)
METRICS = (RESIDENT_SHARE,)
