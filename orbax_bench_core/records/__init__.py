"""Records, the run directory, the samples table and the read model."""

from orbax_bench_core.records.overlaps import OverlapFinder
from orbax_bench_core.records.paired import FirstAttempts, PairedTimes
from orbax_bench_core.records.reading import PointRecords, unreadable
from orbax_bench_core.records.record import (
    NO_ENVIRONMENT,
    PEER_FAILED,
    SCHEMA_VERSION,
    UNMET_NEED,
    VERIFIED_WORDS,
    Attempt,
    Effect,
    ErrorInfo,
    OptionEffect,
    Record,
    SchemaVersion,
    State,
    Status,
    StoreTrouble,
    Trouble,
    Verified,
    weakest,
)
from orbax_bench_core.records.repeats import (
    OperationTimes,
    Repeat,
    Series,
    operations_in_order,
    repeats_of,
    seconds_per_repeat,
)
from orbax_bench_core.records.run import Run, load_run
from orbax_bench_core.records.run_directory import AlreadyRecorded, RunDirectory, RunDirectoryGone
from orbax_bench_core.records.run_info import RunFile, RunInfo
from orbax_bench_core.records.samples import SamplesFile
from orbax_bench_core.records.store_troubles import StoreFlags, store_flags, troubles_of

__all__ = [
    "NO_ENVIRONMENT",
    "PEER_FAILED",
    "SCHEMA_VERSION",
    "UNMET_NEED",
    "VERIFIED_WORDS",
    "AlreadyRecorded",
    "Attempt",
    "Effect",
    "ErrorInfo",
    "FirstAttempts",
    "OperationTimes",
    "OptionEffect",
    "OverlapFinder",
    "PairedTimes",
    "PointRecords",
    "Record",
    "Repeat",
    "Run",
    "RunDirectory",
    "RunDirectoryGone",
    "RunFile",
    "RunInfo",
    "SamplesFile",
    "SchemaVersion",
    "Series",
    "State",
    "Status",
    "StoreFlags",
    "StoreTrouble",
    "Trouble",
    "Verified",
    "load_run",
    "operations_in_order",
    "repeats_of",
    "seconds_per_repeat",
    "store_flags",
    "troubles_of",
    "unreadable",
    "weakest",
]
