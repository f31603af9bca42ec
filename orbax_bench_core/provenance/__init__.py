"""Provenance: machine, storage, versions and image of a process, and revision of what it runs."""

from orbax_bench_core.provenance.code import (
    UNKNOWN,
    CodeUnderTest,
    Source,
    code_under_test,
    loaded_code,
    recorded_code,
)
from orbax_bench_core.provenance.code import ask as ask_git
from orbax_bench_core.provenance.machine import (
    IMAGE,
    NODE,
    PACKAGES,
    REJOINED,
    device_provenance,
    host_provenance,
    image_that_runs,
    other_surroundings,
    package_version,
    storage_provenance,
    surroundings,
    worker_id,
)

__all__ = [
    "IMAGE",
    "NODE",
    "PACKAGES",
    "REJOINED",
    "UNKNOWN",
    "CodeUnderTest",
    "Source",
    "ask_git",
    "code_under_test",
    "device_provenance",
    "host_provenance",
    "image_that_runs",
    "loaded_code",
    "other_surroundings",
    "package_version",
    "recorded_code",
    "storage_provenance",
    "surroundings",
    "worker_id",
]
