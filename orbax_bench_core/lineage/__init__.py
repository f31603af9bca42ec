"""Lineage: from a verdict back to everything that it was made from, by digests.

The manifest of a run directory, `lineage.json`, holds the digest of each file and of its inputs. A
chain is a tree of links from one file back to records, checkpoint, environment and suite.
"""

from orbax_bench_core.lineage.artifacts import (
    artifact_metadata,
    bounded_metrics,
    checkpoint_metadata,
    input_digests,
    output_metadata,
    point_at,
    records_metadata,
    run_digests,
)
from orbax_bench_core.lineage.digests import baseline_digest, file_digest
from orbax_bench_core.lineage.find import trace
from orbax_bench_core.lineage.manifest import SAMPLES, ManifestWriter, read_manifest
from orbax_bench_core.lineage.verify import Link, Status

__all__ = [
    "SAMPLES",
    "Link",
    "ManifestWriter",
    "Status",
    "artifact_metadata",
    "baseline_digest",
    "bounded_metrics",
    "checkpoint_metadata",
    "file_digest",
    "input_digests",
    "output_metadata",
    "point_at",
    "read_manifest",
    "records_metadata",
    "run_digests",
    "trace",
]
