"""Baselines: captured runs, and which of them count, in a directory that is only ever added to.

    <registry>/<revision>/<capture id>/<point id>.json   every raw sample of one point
    <registry>/<revision>/<capture id>.json              what was captured; written last
    <registry>/promotions/<number>-<id>.json             what became the baseline, and when

No file is ever changed or replaced, so that writers cannot take anything from each other and need
neither locks nor preconditions, which not every file system and object store has. What the baseline
is follows from the promotions in their order.
"""

from orbax_bench_core.baselines.capturing import Promoted, capture_run, promote_capture, publish_run
from orbax_bench_core.baselines.find import FoundRun, Past, find_runs, past_log_ratios
from orbax_bench_core.baselines.naming import find_capture, resolve_baseline
from orbax_bench_core.baselines.store import (
    Capture,
    Registry,
    check_revision,
    in_use,
    is_capture_id,
    read_model,
    registry_around,
    registry_path,
    remove_capture,
)
from orbax_bench_core.baselines.stored import (
    Summary,
    capture_into,
    check_baseline,
    load_baseline,
    measured_records,
    read_summary,
    told_before,
)
from orbax_bench_core.baselines.view import capture_document, captures_document, promoted_document

__all__ = [
    "Capture",
    "FoundRun",
    "Past",
    "Promoted",
    "Registry",
    "Summary",
    "capture_document",
    "capture_into",
    "capture_run",
    "captures_document",
    "check_baseline",
    "check_revision",
    "find_capture",
    "find_runs",
    "in_use",
    "is_capture_id",
    "load_baseline",
    "measured_records",
    "past_log_ratios",
    "promote_capture",
    "promoted_document",
    "publish_run",
    "read_model",
    "read_summary",
    "registry_around",
    "registry_path",
    "remove_capture",
    "resolve_baseline",
    "told_before",
]
