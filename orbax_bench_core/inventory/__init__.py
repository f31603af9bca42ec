"""Inventory of a checkpoint on storage: files by role, sizes, and the format they follow."""

from orbax_bench_core.inventory.inventory import FileCount, Inventory, take_inventory
from orbax_bench_core.inventory.layout import ROLES, kinds_of
from orbax_bench_core.inventory.saved import SavedArray, SavedTree, read_saved_trees

__all__ = [
    "ROLES",
    "FileCount",
    "Inventory",
    "SavedArray",
    "SavedTree",
    "kinds_of",
    "read_saved_trees",
    "take_inventory",
]
