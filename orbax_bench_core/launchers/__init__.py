"""Launchers: the same command, started on every host of a place where many hosts are."""

from orbax_bench_core.launchers.containers import is_digest
from orbax_bench_core.launchers.expected import expectation, expected_devices
from orbax_bench_core.launchers.hardware import (
    GENERATIONS,
    GKE_GPU,
    GKE_RESOURCE,
    GPU_KINDS,
    GPU_RESOURCE,
    Gpus,
    SliceShape,
    named_processes,
    parse_gpus,
    parse_slice,
    require_whole_slices,
)
from orbax_bench_core.launchers.launch import (
    LONGEST_NAME,
    Launch,
    Launcher,
    job_name,
)
from orbax_bench_core.launchers.places import (
    PLACES,
    Place,
    expected_of,
    make_launcher,
    place_named,
    place_settings,
)
from orbax_bench_core.launchers.vertex_jobs import note_job, noted_job

__all__ = [
    "GENERATIONS",
    "GKE_GPU",
    "GKE_RESOURCE",
    "GPU_KINDS",
    "GPU_RESOURCE",
    "LONGEST_NAME",
    "PLACES",
    "Gpus",
    "Launch",
    "Launcher",
    "Place",
    "SliceShape",
    "expectation",
    "expected_devices",
    "expected_of",
    "is_digest",
    "job_name",
    "make_launcher",
    "named_processes",
    "note_job",
    "noted_job",
    "parse_gpus",
    "parse_slice",
    "place_named",
    "place_settings",
    "require_whole_slices",
]
