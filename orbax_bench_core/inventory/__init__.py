"""Inventory of a checkpoint on storage: files by role, sizes, and the format they follow."""

from orbax_bench_core.inventory.inventory import FileCount, Inventory, take_inventory
from orbax_bench_core.inventory.layout import ROLES, kinds_of

__all__ = [
    "ROLES",
    "FileCount",
    "Inventory",
    "kinds_of",
    "take_inventory",
]
