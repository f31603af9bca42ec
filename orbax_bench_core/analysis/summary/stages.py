"""Stages of saves and loads that Orbax times: which of them follow each other, and their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "waits for others": (
        "2_save_breakdown/checkpoint_start_sync_s",
        "2_save_breakdown/blocking_wait_prev_s",
        "2_save_breakdown/wait_for_prev_s",
    ),
    "makes folders": (
        "2_save_breakdown/directory_creation_s",
        "2_save_breakdown/async_directory_creation_s",
        "2_save_breakdown/background_directory_creation_s",
    ),
    "device to host": ("2_save_breakdown/blocking_d2h_s",),
    "writes arrays": ("2_save_breakdown/worker_io_s", "2_save_breakdown/commit_s"),
    "reads arrays": (
        "3_load_breakdown/worker_io_s",
        "3_load_breakdown/primary_deserialization_s",
    ),
    "sends to replicas": ("3_load_breakdown/broadcast_s",),
    "writes metadata": (
        "2_save_breakdown/metadata_write_s",
        "2_save_breakdown/background_meta_write_s",
    ),
    "merges OCDBT": (
        "2_save_breakdown/ocdbt_merge_s",
        "2_save_breakdown/background_ocdbt_merge_s",
    ),
    "commits": ("2_save_breakdown/background_finalize_s", "2_save_breakdown/finalize_s"),
}
"""Metrics of each stage; releases of Orbax have one or several of them, which say the same.

Stages that contain others, such as the whole time a caller waits, are left out.
"""

STAGE_METRICS: Final = frozenset(metric for metrics in STAGES.values() for metric in metrics)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of one operation of one point.

    Attributes:
        name: What happens in it.
        seconds: Median over repeats and hosts.
    """

    name: str
    seconds: float


def stages_of(medians: Mapping[str, float]) -> tuple[Stage, ...]:
    """Returns the stages of an operation in their order, from the medians of its metrics."""
    found = ((name, _first(medians, metrics)) for name, metrics in STAGES.items())
    return tuple(Stage(name=name, seconds=seconds) for name, seconds in found if seconds)


def _first(medians: Mapping[str, float], metrics: Iterable[str]) -> float:
    return next((medians[metric] for metric in metrics if medians.get(metric)), 0.0)
