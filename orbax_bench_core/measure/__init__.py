"""Measured blocks: `with metrics.measure("save"): ...` records time, memory, events and I/O."""

from orbax_bench_core.measure.collectors import (
    ANON,
    HBM_IN_USE,
    OPEN_FILES,
    RETRIES,
    RSS,
    RSS_GROWTH,
    THREADS,
    Heard,
    Reading,
    also_collecting,
    code_of,
    hearing_events,
    reading_as_text,
)
from orbax_bench_core.measure.definition import (
    BYTES,
    PAGE_FAULTS,
    RESIDENT_SHARE,
    TIME,
    TOLERATED_SHARE,
    Better,
    Family,
    Metric,
)
from orbax_bench_core.measure.free_memory import free_memory_bytes
from orbax_bench_core.measure.interference import (
    BLOCKED,
    LOST,
    LOST_STEPS,
    SAVE_SHARE,
    STEP_MAX,
    STEP_MEDIAN,
    STEP_P99,
    STEPS,
    interference_of_save,
    interference_of_steps,
    tail_of_steps,
)
from orbax_bench_core.measure.known_metrics import all_metrics, lookup
from orbax_bench_core.measure.metrics import Metrics, default_metrics
from orbax_bench_core.measure.observers import observing
from orbax_bench_core.measure.profiling import tracing
from orbax_bench_core.measure.recovery import PEERS_NOTICE, STEPS_LOST, UNCOMMITTED
from orbax_bench_core.measure.sample import Sample, block_name

__all__ = [
    "ANON",
    "BLOCKED",
    "BYTES",
    "HBM_IN_USE",
    "LOST",
    "LOST_STEPS",
    "OPEN_FILES",
    "PAGE_FAULTS",
    "PEERS_NOTICE",
    "RESIDENT_SHARE",
    "RETRIES",
    "RSS",
    "RSS_GROWTH",
    "SAVE_SHARE",
    "STEPS",
    "STEPS_LOST",
    "STEP_MAX",
    "STEP_MEDIAN",
    "STEP_P99",
    "THREADS",
    "TIME",
    "TOLERATED_SHARE",
    "UNCOMMITTED",
    "Better",
    "Family",
    "Heard",
    "Metric",
    "Metrics",
    "Reading",
    "Sample",
    "all_metrics",
    "also_collecting",
    "block_name",
    "code_of",
    "default_metrics",
    "free_memory_bytes",
    "hearing_events",
    "interference_of_save",
    "interference_of_steps",
    "lookup",
    "observing",
    "reading_as_text",
    "tail_of_steps",
    "tracing",
]
