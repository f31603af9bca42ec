"""Launchers: the same command, started on every host of a place where many hosts are."""

from orbax_bench_core.launchers.hardware import (
    GENERATIONS,
    GKE_ACCELERATOR,
    GKE_RESOURCE,
    GKE_TOPOLOGY,
    Generation,
    SliceShape,
    parse_slice,
    require_single_host,
    slice_shape,
    topologies,
)
from orbax_bench_core.launchers.launch import Launch, Launcher, require_client
from orbax_bench_core.launchers.places import PLACES, Place, place_named, place_settings

__all__ = [
    "GENERATIONS",
    "GKE_ACCELERATOR",
    "GKE_RESOURCE",
    "GKE_TOPOLOGY",
    "PLACES",
    "Generation",
    "Launch",
    "Launcher",
    "Place",
    "SliceShape",
    "parse_slice",
    "place_named",
    "place_settings",
    "require_client",
    "require_single_host",
    "slice_shape",
    "topologies",
]
