"""Lineage: from a verdict back to everything that it was made from, by digests.

The manifest of a run directory, `lineage.json`, is a lock file: the digest of each file and of its
inputs, and what each step of a pipeline has measured. `check` computes each digest again.
"""

from orbax_bench_core.lineage.artifacts import artifact_metadata as artifact_metadata
from orbax_bench_core.lineage.artifacts import bounded_metrics as bounded_metrics
from orbax_bench_core.lineage.artifacts import checkpoint_metadata as checkpoint_metadata
from orbax_bench_core.lineage.artifacts import output_metadata as output_metadata
from orbax_bench_core.lineage.artifacts import place_of as place_of
from orbax_bench_core.lineage.artifacts import point_at as point_at
from orbax_bench_core.lineage.batches import lost_batches as lost_batches
from orbax_bench_core.lineage.batches import name_batch as name_batch
from orbax_bench_core.lineage.batches import read_planned as read_planned
from orbax_bench_core.lineage.batches import write_planned as write_planned
from orbax_bench_core.lineage.check import BROKEN as BROKEN
from orbax_bench_core.lineage.check import Finding as Finding
from orbax_bench_core.lineage.check import Status as Status
from orbax_bench_core.lineage.check import check as check
from orbax_bench_core.lineage.check import is_unchanged as is_unchanged
from orbax_bench_core.lineage.digests import baseline_digest as baseline_digest
from orbax_bench_core.lineage.digests import config_digest as config_digest
from orbax_bench_core.lineage.digests import content_digest as content_digest
from orbax_bench_core.lineage.digests import file_digest as file_digest
from orbax_bench_core.lineage.digests import point_digests as point_digests
from orbax_bench_core.lineage.find import trace as trace
from orbax_bench_core.lineage.manifest import ENDING as ENDING
from orbax_bench_core.lineage.manifest import METRICS as METRICS
from orbax_bench_core.lineage.manifest import SAMPLES as SAMPLES
from orbax_bench_core.lineage.manifest import TENSORBOARD as TENSORBOARD
from orbax_bench_core.lineage.manifest import ManifestWriter as ManifestWriter
from orbax_bench_core.lineage.manifest import compared_with as compared_with
from orbax_bench_core.lineage.manifest import made_from_these_records as made_from_these_records
from orbax_bench_core.lineage.manifest import note_ending as note_ending
from orbax_bench_core.lineage.manifest import read_manifest as read_manifest
from orbax_bench_core.lineage.view import lineage_document as lineage_document
