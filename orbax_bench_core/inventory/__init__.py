"""Inventory of a checkpoint on storage: files by role, sizes, and the format they follow."""

from orbax_bench_core.inventory.checkpoint import random_keys as random_keys
from orbax_bench_core.inventory.checkpoint import read_checkpoint as read_checkpoint
from orbax_bench_core.inventory.checkpoint import read_items as read_items
from orbax_bench_core.inventory.checkpoint import read_saved_trees as read_saved_trees
from orbax_bench_core.inventory.inventory import FileCount as FileCount
from orbax_bench_core.inventory.inventory import Inventory as Inventory
from orbax_bench_core.inventory.inventory import file_size as file_size
from orbax_bench_core.inventory.inventory import take_inventory as take_inventory
from orbax_bench_core.inventory.inventory import walk as walk
from orbax_bench_core.inventory.layout import ROLES as ROLES
from orbax_bench_core.inventory.layout import kinds_of as kinds_of
from orbax_bench_core.inventory.locating import ROOT_FILE as ROOT_FILE
from orbax_bench_core.inventory.locating import SAFETENSORS as SAFETENSORS
from orbax_bench_core.inventory.locating import TREE as TREE
from orbax_bench_core.inventory.locating import UNFINISHED as UNFINISHED
from orbax_bench_core.inventory.locating import Location as Location
from orbax_bench_core.inventory.locating import locate as locate
from orbax_bench_core.inventory.safetensors import DTYPES as DTYPES
from orbax_bench_core.inventory.safetensors import read_model as read_model
from orbax_bench_core.inventory.store import ZarrArray as ZarrArray
from orbax_bench_core.inventory.store import store_spec as store_spec
from orbax_bench_core.inventory.stored import StoredCheckpoint as StoredCheckpoint
