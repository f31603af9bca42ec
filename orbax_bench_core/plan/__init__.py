"""Plans that need no run: shards, bytes, memory and time of a save, and goodput of a job.

A **plan** is arithmetic: it reads no value and starts no device.
"""

from orbax_bench_core.plan.layout import ArrayLayout, SaveLayout
from orbax_bench_core.plan.meshes import PlanMesh, read_mesh
from orbax_bench_core.plan.options import StorageOptions, options_of
from orbax_bench_core.plan.planning import (
    Plan,
    plan_checkpoint,
    plan_source,
    plan_suite,
    read_source,
    speeds_of_run,
)
from orbax_bench_core.plan.reading import (
    MemoryBounds,
    ReadArray,
    ReadCost,
    Speeds,
    TimeBounds,
    load_bound,
    read_cost,
)
from orbax_bench_core.plan.save_count import orbax_save_count
from orbax_bench_core.plan.sharding_files import plan_shardings
from orbax_bench_core.plan.trees import (
    PlannedArray,
    PlannedTree,
    onto,
    saved_mesh,
    tree_of_config,
    tree_of_model,
    tree_of_stored,
)
from orbax_bench_core.plan.view import plans_document

__all__ = [
    "ArrayLayout",
    "MemoryBounds",
    "Plan",
    "PlanMesh",
    "PlannedArray",
    "PlannedTree",
    "ReadArray",
    "ReadCost",
    "SaveLayout",
    "Speeds",
    "StorageOptions",
    "TimeBounds",
    "load_bound",
    "onto",
    "options_of",
    "orbax_save_count",
    "plan_checkpoint",
    "plan_shardings",
    "plan_source",
    "plan_suite",
    "plans_document",
    "read_cost",
    "read_mesh",
    "read_source",
    "saved_mesh",
    "speeds_of_run",
    "tree_of_config",
    "tree_of_model",
    "tree_of_stored",
]
