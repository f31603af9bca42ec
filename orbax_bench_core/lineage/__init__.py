"""Lineage: manifests, verification, artifacts, and what a given path is."""

from orbax_bench_core.lineage.artifacts import (
    SAMPLES,
    artifact_metadata,
    baseline_digest,
    bounded_metrics,
    checkpoint_metadata,
    digests_of_runs,
    file_digest,
    input_digests,
    keep_conclusion,
    keep_lineage,
    output_metadata,
    point_at,
    records_metadata,
)
from orbax_bench_core.lineage.find import chain_of
from orbax_bench_core.lineage.manifest import Seen, lineage_of_records
from orbax_bench_core.lineage.verify import Link, Status

__all__ = [
    "SAMPLES",
    "Link",
    "Seen",
    "Status",
    "artifact_metadata",
    "baseline_digest",
    "bounded_metrics",
    "chain_of",
    "checkpoint_metadata",
    "digests_of_runs",
    "file_digest",
    "input_digests",
    "keep_conclusion",
    "keep_lineage",
    "lineage_of_records",
    "output_metadata",
    "point_at",
    "records_metadata",
]
