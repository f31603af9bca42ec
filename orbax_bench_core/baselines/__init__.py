"""Baselines: captured runs, and which of them count, in a directory that is only ever added to.

    <registry>/<revision>/<capture id>/<point id>.json   every raw sample of one point
    <registry>/<revision>/<capture id>.json              what was captured; written last
    <registry>/promotions/<number>-<id>.json             what became the baseline, and when

No file is ever changed or replaced, so that writers cannot take anything from each other and need
neither locks nor preconditions, which not every file system and object store has. What the baseline
is follows from the promotions in their order.
"""

from orbax_bench_core.baselines.captures import Capture as Capture
from orbax_bench_core.baselines.captures import is_capture_id as is_capture_id
from orbax_bench_core.baselines.captures import read_model as read_model
from orbax_bench_core.baselines.capturing import Promoted as Promoted
from orbax_bench_core.baselines.capturing import capture_run as capture_run
from orbax_bench_core.baselines.capturing import promote_capture as promote_capture
from orbax_bench_core.baselines.capturing import publish_run as publish_run
from orbax_bench_core.baselines.find import FoundRun as FoundRun
from orbax_bench_core.baselines.find import Past as Past
from orbax_bench_core.baselines.find import find_runs as find_runs
from orbax_bench_core.baselines.find import found_in as found_in
from orbax_bench_core.baselines.find import past_log_ratios as past_log_ratios
from orbax_bench_core.baselines.find import runs_below as runs_below
from orbax_bench_core.baselines.naming import find_capture as find_capture
from orbax_bench_core.baselines.naming import resolve_baseline as resolve_baseline
from orbax_bench_core.baselines.store import Registry as Registry
from orbax_bench_core.baselines.store import check_revision as check_revision
from orbax_bench_core.baselines.store import files_of_capture as files_of_capture
from orbax_bench_core.baselines.store import in_use as in_use
from orbax_bench_core.baselines.store import registry_around as registry_around
from orbax_bench_core.baselines.store import registry_path as registry_path
from orbax_bench_core.baselines.store import remove_capture as remove_capture
from orbax_bench_core.baselines.stored import Summary as Summary
from orbax_bench_core.baselines.stored import capture_into as capture_into
from orbax_bench_core.baselines.stored import check_baseline as check_baseline
from orbax_bench_core.baselines.stored import load_baseline as load_baseline
from orbax_bench_core.baselines.stored import measured_records as measured_records
from orbax_bench_core.baselines.stored import read_summary as read_summary
from orbax_bench_core.baselines.stored import told_before as told_before
from orbax_bench_core.baselines.view import capture_document as capture_document
from orbax_bench_core.baselines.view import captures_document as captures_document
from orbax_bench_core.baselines.view import promoted_document as promoted_document
