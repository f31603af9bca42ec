"""Records, the run directory, the samples table and the read model."""

from orbax_bench_core.records.files import atomic_file, write_atomically
from orbax_bench_core.records.machine import (
    PACKAGES,
    UNKNOWN,
    device_provenance,
    host_provenance,
    other_surroundings,
    package_version,
    storage_provenance,
    surroundings,
)
from orbax_bench_core.records.operation_times import by_point, repeat_times
from orbax_bench_core.records.paired import PairedSeries, paired_series
from orbax_bench_core.records.record import (
    PEER_FAILED,
    SCHEMA_VERSION,
    Attempt,
    ErrorInfo,
    Record,
    ResultModel,
    State,
    Status,
)
from orbax_bench_core.records.run import ByArm
from orbax_bench_core.records.run_directory import (
    LIMITS_FILE,
    STUDY_FILE,
    VERDICTS_FILE,
    Repeat,
    RunDirectory,
    RunInfo,
)
from orbax_bench_core.records.samples import write_parquet
from orbax_bench_core.records.versions import checked_record_files, refuse_other_version

__all__ = [
    "LIMITS_FILE",
    "PACKAGES",
    "PEER_FAILED",
    "SCHEMA_VERSION",
    "STUDY_FILE",
    "UNKNOWN",
    "VERDICTS_FILE",
    "Attempt",
    "ByArm",
    "ErrorInfo",
    "PairedSeries",
    "Record",
    "Repeat",
    "ResultModel",
    "RunDirectory",
    "RunInfo",
    "State",
    "Status",
    "atomic_file",
    "by_point",
    "checked_record_files",
    "device_provenance",
    "host_provenance",
    "other_surroundings",
    "package_version",
    "paired_series",
    "refuse_other_version",
    "repeat_times",
    "storage_provenance",
    "surroundings",
    "write_atomically",
    "write_parquet",
]
