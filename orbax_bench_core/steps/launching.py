"""Launching step: one sweep point measured on hosts that a launcher starts, waited for here."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.config import ConfigModel, UserError
from orbax_bench_core.execute import RunSettings, Session
from orbax_bench_core.launchers import (
    Launch,
    SliceShape,
    parse_slice,
    place_named,
    place_settings,
    require_whole_slices,
)
from orbax_bench_core.steps.point import PointFailed, PointOutcome
from orbax_bench_core.sweep import SweepEntry, sides

_IMAGE: Final = "ORBAX_BENCH_IMAGE"
_SHORT: Final = 6
"""Characters of a run's id in the name of a job: two runs may measure the same point."""
_NODES: Final = {
    "node_selector": ("node_selector",),
    "tolerations": ("tolerations",),
    "resources": ("resources",),
    "affinity": ("affinity",),
    "env": ("env",),
    "volumes": ("volumes",),
    "volume_mounts": ("volume_mounts",),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointHosts:
    """Hosts that a point is measured on.

    Attributes:
        launcher: What starts them: a place that `orbax-bench launch --on` takes.
        hosts: How many there are; 0 for as many as the point has processes, or the slices hosts.
        tpu: The TPU slice, as `TYPE:TOPOLOGY`; empty for none.
        slices: How many such slices.
        settings: Settings of the place, each `KEY=VALUE`.
        nodes: Fragments of a pod, by their names in `kfp.dsl.TaskConfig`: what was set on the step
            for the pods of the hosts. What is None was not set.
    """

    launcher: str
    hosts: int = 0
    tpu: str = ""
    slices: int = 1
    settings: Sequence[str] = ()
    nodes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
