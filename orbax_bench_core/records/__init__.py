"""Records, the run directory, the samples table and the read model."""

from orbax_bench_core.records.code import (
    CodeUnderTest,
    Source,
    code_of,
    code_under_test,
    loaded_code,
)
from orbax_bench_core.records.files import atomic_file, write_atomically
from orbax_bench_core.records.git import Answer as GitAnswer
from orbax_bench_core.records.git import ask as ask_git
from orbax_bench_core.records.lease import PACE, LeaseLost
from orbax_bench_core.records.machine import (
    PACKAGES,
    REJOINED,
    UNKNOWN,
    device_provenance,
    host_provenance,
    other_surroundings,
    package_version,
    storage_provenance,
    surroundings,
    worker_id,
)
from orbax_bench_core.records.operation_times import (
    OperationTimes,
    operations_in_order,
    seconds_per_repeat,
)
from orbax_bench_core.records.paired import FirstAttempts, PairedTimes
from orbax_bench_core.records.record import (
    NO_ENVIRONMENT,
    PEER_FAILED,
    SCHEMA_VERSION,
    UNMET_NEED,
    Attempt,
    Effect,
    ErrorInfo,
    OptionEffect,
    Record,
    ResultModel,
    SchemaVersion,
    State,
    Status,
    StoreTrouble,
    Trouble,
    Verified,
)
from orbax_bench_core.records.repeats import Repeat, Series, repeats_of
from orbax_bench_core.records.run import Run, load_run
from orbax_bench_core.records.run_directory import (
    HOST_LIMITS_FILE,
    LIMITS_FILE,
    RECOVERY_FILE,
    SOAK_FILE,
    STUDY_FILE,
    VERDICTS_FILE,
    AlreadyRecorded,
    RunDirectory,
    RunDirectoryGone,
)
from orbax_bench_core.records.run_info import RunInfo
from orbax_bench_core.records.samples import write_parquet
from orbax_bench_core.records.store_troubles import (
    StoreFlagCounter,
    StoreFlags,
    flags_of,
    troubles_of,
)
from orbax_bench_core.records.verification import VERIFIED_WORDS, weakest
from orbax_bench_core.records.versions import checked_record_files

__all__ = [
    "HOST_LIMITS_FILE",
    "LIMITS_FILE",
    "NO_ENVIRONMENT",
    "PACE",
    "PACKAGES",
    "PEER_FAILED",
    "RECOVERY_FILE",
    "REJOINED",
    "SCHEMA_VERSION",
    "SOAK_FILE",
    "STUDY_FILE",
    "UNKNOWN",
    "UNMET_NEED",
    "VERDICTS_FILE",
    "VERIFIED_WORDS",
    "AlreadyRecorded",
    "Attempt",
    "CodeUnderTest",
    "Effect",
    "ErrorInfo",
    "FirstAttempts",
    "GitAnswer",
    "LeaseLost",
    "OperationTimes",
    "OptionEffect",
    "PairedTimes",
    "Record",
    "Repeat",
    "ResultModel",
    "Run",
    "RunDirectory",
    "RunDirectoryGone",
    "RunInfo",
    "SchemaVersion",
    "Series",
    "Source",
    "State",
    "Status",
    "StoreFlagCounter",
    "StoreFlags",
    "StoreTrouble",
    "Trouble",
    "Verified",
    "ask_git",
    "atomic_file",
    "checked_record_files",
    "code_of",
    "code_under_test",
    "device_provenance",
    "flags_of",
    "host_provenance",
    "load_run",
    "loaded_code",
    "operations_in_order",
    "other_surroundings",
    "package_version",
    "repeats_of",
    "seconds_per_repeat",
    "storage_provenance",
    "surroundings",
    "troubles_of",
    "weakest",
    "worker_id",
    "write_atomically",
    "write_parquet",
]
