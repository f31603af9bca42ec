"""Lineage: from a verdict back to everything that it was made from, by digests.

The manifest of a run directory, `lineage.json`, is a lock file: the digest of each file and of its
inputs, and what each step of a pipeline has measured. `check` computes each digest again.
"""

from orbax_bench_core.lineage.artifacts import (
    artifact_metadata,
    bounded_metrics,
    checkpoint_metadata,
    output_metadata,
    place_of,
    point_at,
)
from orbax_bench_core.lineage.batches import (
    lost_batches,
    name_batch,
    read_planned,
    write_planned,
)
from orbax_bench_core.lineage.check import BROKEN, Finding, Status, check, is_unchanged
from orbax_bench_core.lineage.digests import (
    baseline_digest,
    config_digest,
    content_digest,
    file_digest,
    folder_digest,
    point_digests,
)
from orbax_bench_core.lineage.find import trace
from orbax_bench_core.lineage.manifest import (
    ENDING,
    METRICS,
    SAMPLES,
    TENSORBOARD,
    ManifestWriter,
    compared_with,
    made_from_these_records,
    note_ending,
    read_manifest,
)

__all__ = [
    "BROKEN",
    "ENDING",
    "METRICS",
    "SAMPLES",
    "TENSORBOARD",
    "Finding",
    "ManifestWriter",
    "Status",
    "artifact_metadata",
    "baseline_digest",
    "bounded_metrics",
    "check",
    "checkpoint_metadata",
    "compared_with",
    "config_digest",
    "content_digest",
    "file_digest",
    "folder_digest",
    "is_unchanged",
    "lost_batches",
    "made_from_these_records",
    "name_batch",
    "note_ending",
    "output_metadata",
    "place_of",
    "point_at",
    "point_digests",
    "read_manifest",
    "read_planned",
    "trace",
    "write_planned",
]
