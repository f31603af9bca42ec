"""Inventory of a checkpoint on storage: files by role, sizes, and the format they follow."""

from orbax_bench_core.inventory.checkpoint import StoredArray, StoredCheckpoint, read_checkpoint
from orbax_bench_core.inventory.inventory import FileCount, Inventory, take_inventory
from orbax_bench_core.inventory.layout import ROLES, UNFINISHED, kinds_of
from orbax_bench_core.inventory.saved import SavedTree, read_saved_trees, store_spec
from orbax_bench_core.inventory.walk import file_size, walk

__all__ = [
    "ROLES",
    "UNFINISHED",
    "FileCount",
    "Inventory",
    "SavedTree",
    "StoredArray",
    "StoredCheckpoint",
    "file_size",
    "kinds_of",
    "read_checkpoint",
    "read_saved_trees",
    "store_spec",
    "take_inventory",
    "walk",
]
