"""Inventory of a checkpoint on storage: files by role, sizes, and the format they follow."""

from orbax_bench_core.inventory.checkpoint import (
    StoredArray,
    StoredCheckpoint,
    read_checkpoint,
    read_saved_trees,
)
from orbax_bench_core.inventory.inventory import (
    FileCount,
    Inventory,
    file_size,
    take_inventory,
    walk,
)
from orbax_bench_core.inventory.keys import store_spec
from orbax_bench_core.inventory.layout import ROLES, TREE, UNFINISHED, kinds_of
from orbax_bench_core.inventory.location import ROOT_FILE, locate
from orbax_bench_core.inventory.zarr import ZarrArray

__all__ = [
    "ROLES",
    "ROOT_FILE",
    "TREE",
    "UNFINISHED",
    "FileCount",
    "Inventory",
    "StoredArray",
    "StoredCheckpoint",
    "ZarrArray",
    "file_size",
    "kinds_of",
    "locate",
    "read_checkpoint",
    "read_saved_trees",
    "store_spec",
    "take_inventory",
    "walk",
]
