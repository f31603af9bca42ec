"""Options of benchmarks as code of Orbax, and what Orbax does by default.

The tables are those of one release; a test compares them with the Orbax that is installed.
"""

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from orbax_bench_core.sweep import SweepPoint, is_builtin, short_name

RELEASE: Final = "orbax-checkpoint 0.12.8"
"""Release of the attributes and defaults below."""

_GIB: Final = 2**30
_MIB: Final = 2**20
_V1: Final = frozenset(
    (
        "save_restore",
        "staged_save",
        "train_interference",
        "resharding",
        "restore_and_broadcast",
        "replica_parallel_multislice",
        "lustre",
        "nnx_restore",
    )
)
"""Built-ins that save and load with Orbax's v1 functions."""

_V1_LOADS: Final = frozenset(("orbax_load", "safetensors_load"))
_MANAGER_OF_V0: Final = frozenset(("checkpoint_manager", "checkpoint_interval", "deleter"))
"""Built-ins that save the one item of a `CheckpointManager` with Orbax's default handler."""

_NOT_ORBAX: Final = "its options are PyTorch's; the benchmark's class shows the calls"
_SEVERAL: Final = (
    "it takes several processes with a disk each; its options have the names of the fields of the "
    "manager's options"
)
WITHOUT_CODE: Final[Mapping[str, str]] = {
    "array_handler": "it measures one handler, which saves no tree; take pytree_checkpoint",
    "checkpoint_policy": "its policies are the classes of ocp.checkpoint_managers with their names",
    "emergency_checkpoint_manager": _SEVERAL,
    "p2p_checkpoint_manager": _SEVERAL,
    "multihost_dispatchers": "it measures a part of Orbax that no option of a save chooses",
    "multislice_broadcast": "it measures a part of Orbax that no option of a save chooses",
    "training_job": "its tier is a manager of local disks",
    "checkpointables": "its items are those of ocp.save_checkpointables, which a training chooses",
    "partial_checkpoint": "its pieces are those of ocp.partial.save, which a training chooses",
    "snapshotter": "it measures snapshots in memory; its options are numbers of slices",
    "single_replica": "its options are arguments of ocp.type_handlers.SingleReplicaArrayHandler, "
    "which must be told the sharding of one replica of each array",
    "v0_cancel": "it measures how a save is cancelled, which nobody chooses",
    "v1_cancel": "it measures how a save is cancelled, which nobody chooses",
    "pytorch_dcp": _NOT_ORBAX,
    "pytorch_safetensors": _NOT_ORBAX,
    "torch_save": _NOT_ORBAX,
}
"""Why options of a built-in are no code, by its name."""


@dataclasses.dataclass(frozen=True)
class Attribute:
    """Attribute of Orbax that an option sets."""

    path: str  # where it is: below the v1 context, or as the argument of what its first name makes
    default: Any = None  # what Orbax does when nothing is set
    factor: float = 1  # what the option is multiplied by
    form: str = "{!r}"  # how it is written in code

    def code(self, value: Any) -> str:
        """Returns a value as it is written in code."""
        if value is None:
            return "None"
        if self.factor == 1:
            return self.form.format(value)
        number = value * self.factor
        return repr(int(number) if isinstance(self.factor, int) else number)

    @property
    def argument(self) -> str:
        """The last name of the path."""
        return self.path.rpartition(".")[2]


ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "use_ocdbt": Attribute("array.saving.use_ocdbt", True),
    "use_zarr3": Attribute("array.saving.use_zarr3", True),
    "use_compression": Attribute("array.saving.use_compression", True),
    # Orbax has None here, which it takes for True except where JAX_PLATFORMS names GPUs.
    "use_replica_parallel": Attribute("array.saving.use_replica_parallel", True),
    "enable_replica_parallel_separate_folder": Attribute(
        "array.saving.enable_replica_parallel_separate_folder", False
    ),
    "chunk_byte_size": Attribute("array.saving.storage_options.chunk_byte_size"),
    "save_dtype": Attribute("array.saving.scoped_storage_options_creator", form="stored"),
    "use_load_and_broadcast": Attribute("array.loading.use_load_and_broadcast", False),
    "save_concurrent_gb": Attribute("memory.write_concurrent_bytes", factor=_GIB),
    "restore_concurrent_gb": Attribute("memory.read_concurrent_bytes", factor=_GIB),
    "device_host_concurrent_gb": Attribute("memory.transfer_concurrent_bytes", factor=_GIB),
    "background_keys": Attribute("memory.serialization_status_callback", form="Background()"),
    "deepcopy_host_arrays": Attribute("memory.deepcopy_host_arrays", True),
    "create_directories_asynchronously": Attribute(
        "asynchronous.create_directories_asynchronously", True
    ),
    "timeout_secs": Attribute("asynchronous.timeout_secs", 1200),
    **{
        name: Attribute(f"array.saving.{name}", default)
        for name, default in (
            ("enable_pinned_host_transfer", None),
            ("ocdbt_target_data_file_size", None),
            ("min_slice_bytes_for_replica_parallel", None),
            ("max_replicas_for_replica_parallel", None),
            ("enable_write_sharding_file", True),
            ("enable_post_merge_validation", True),
        )
    },
    "skip_sync_file_validations": Attribute("file.skip_sync_file_validations", False),
    "path_permission_mode": Attribute("file.path_permission_mode", form="int({!r}, 8)"),
    "atomicity": Attribute("atomicity.mode", "auto", form="ocp.options.AtomicityMode({!r})"),
}
"""The attribute of the v1 context that each option sets, by its name in a suite."""

_SAFETENSORS: Final = {
    "safetensors_max_over_read_ratio": Attribute("safetensors.max_over_read_ratio"),
    "safetensors_read_chunk_mb": Attribute("safetensors.read_chunk_bytes", factor=_MIB),
}
_TRAINING: Final = {
    "save_interval_steps": Attribute(
        "training.save_decision_policy",
        form="ocp.training.save_decision_policies.FixedIntervalPolicy({!r})",
    ),
    "max_to_keep": Attribute(
        "training.preservation_policy", form="ocp.training.preservation_policies.LatestN({!r})"
    ),
}
HANDLER: Final[Mapping[str, Attribute]] = {
    "use_ocdbt": Attribute("handler.use_ocdbt", True),
    "use_zarr3": Attribute("handler.use_zarr3", False),
    "use_compression": Attribute("handler.use_compression", True),
    "save_concurrent_gb": Attribute("handler.save_concurrent_gb"),
    "restore_concurrent_gb": Attribute("handler.restore_concurrent_gb"),
    "save_device_host_concurrent_gb": Attribute("handler.save_device_host_concurrent_gb"),
    "enable_pinned_host_transfer": Attribute("handler.enable_pinned_host_transfer"),
    "use_replica_parallel": Attribute("arrays.use_replica_parallel", True),
    "enable_replica_parallel_separate_folder": Attribute(
        "arrays.enable_replica_parallel_separate_folder", False
    ),
}
"""The arguments of the v0 handlers."""

MANAGER: Final[Mapping[str, Attribute]] = {
    "save_interval_steps": Attribute("options.save_interval_steps", 1),
    "max_to_keep": Attribute("options.max_to_keep"),
    "num_deletion_threads": Attribute("options.num_deletion_threads"),
    "keep_period": Attribute("options.keep_period"),
    "lightweight_initialize": Attribute("options.lightweight_initialize", False),
    "enable_background_delete": Attribute("options.enable_background_delete", False),
    "todelete_subdir": Attribute("options.todelete_subdir"),
    "todelete_full_path": Attribute("options.todelete_full_path"),
    "enable_async_checkpointing": Attribute("options.enable_async_checkpointing", True),
    "async_enabled": Attribute("options.enable_async_checkpointing", True),
}
"""The arguments of `CheckpointManagerOptions`."""

_STORED: Final = """\
def stored(path, leaf):
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
        return None
    return ocp.options.ArrayOptions.Saving.StorageOptions(dtype=jnp.{dtype})

"""
"""Casts floating-point arrays as `store_floating_as` of the state room does."""

_BACKGROUND: Final = """\
class Background(types.DefaultSerializationStatusCallback):
    def key_priority(self, keypath):
        path = jax.tree_util.keystr(keypath, simple=True, separator=".")
        if re.search({keys!r}, path):
            return types.TransferPriority.ASYNCHRONOUS_DEPRIORITIZED
        return types.TransferPriority.SYNCHRONOUS

"""
"""Copies arrays off their devices as `copy_in_background` of the state room does."""

_REGISTRY: Final = """\
usual = ocp.type_handlers.get_type_handler
registry = ocp.type_handlers.create_type_handler_registry(
    *((kind, usual(kind)) for kind in (int, float, bytes, np.number, np.ndarray, str)),
    (jax.Array, arrays),
)"""


_OF_TIERS: Final = {
    f"{tier}_{option}": f"{tier}.{option}"
    for tier in ("local", "persistent")
    for option in ("save_interval_steps", "max_to_keep")
} | {"replica_axis_index": "replica_axis_index"}

_WITHOUT_FORM: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "checkpoint_policy": {
        "checkpoint_policies_options": (
            "options.save_decision_policy",
            "options.preservation_policy",
        )
    },
    "array_handler": {
        "use_replica_parallel": ("arrays.use_replica_parallel",),
        "enable_replica_parallel_separate_folder": (
            "arrays.enable_replica_parallel_separate_folder",
        ),
        "use_metadata_store": ("arrays.array_metadata_store",),
    },
    "staged_save": {
        "background_keys": ("memory.serialization_status_callback",),
        "regulator_max_gb": ("memory.regulator_options",),
        "expected_surge_gb": ("memory.expected_surge_bytes",),
    },
    "checkpoint_manager": {"best_fn": ("options.best_fn", "options.best_mode")},
    "checkpoint_manager_perf": {
        "enable_per_process_directory_creation": ("options.enable_per_process_directory_creation",)
    },
    "emergency_checkpoint_manager": {
        name: (f"emergency.{path}",)
        for name, path in (
            *_OF_TIERS.items(),
            ("single_host_load_and_broadcast", "single_host_load_and_broadcast"),
        )
    },
    "p2p_checkpoint_manager": {name: (f"p2p.{path}",) for name, path in _OF_TIERS.items()},
    "training_job": {
        "save_interval_steps": ("training.save_decision_policy", "replicator.save_interval_steps"),
        "max_to_keep": ("training.preservation_policy", "replicator.preservation_policy"),
    },
    "partial_checkpoint": {"left_out_by": ("pytree.loading.partial_load",)},
    "orbax_load": {"use_colocated_python": ("pathways.checkpointing_impl",)},
    "pytree_checkpoint": {"use_colocated_python": ("arrays.dispatcher",)},
}
"""Attributes that options set in ways which no code of one value shows, by benchmark and option."""


def orbax_attributes(benchmark: str) -> dict[str, tuple[str, ...]]:
    """Returns the paths of what each option of a built-in sets in Orbax, by the option's name."""
    table = _attributes(benchmark, tier="storage")
    return {name: (each.path,) for name, each in table.items()} | dict(
        _WITHOUT_FORM.get(benchmark, {})
    )


def attributes(point: SweepPoint) -> Mapping[str, Attribute]:
    """Returns the attributes of Orbax that options of a benchmark set; none of a user's own."""
    if not is_builtin(point.benchmark):
        return {}
    return _attributes(short_name(point.benchmark), tier=point.options.get("tier"))


def _attributes(name: str, *, tier: object) -> Mapping[str, Attribute]:
    if name in _V1:
        return ATTRIBUTES
    if name in _V1_LOADS:
        return {**ATTRIBUTES, **_SAFETENSORS}
    if name == "training_job" and tier == "storage":
        return {**ATTRIBUTES, **_TRAINING}
    if name == "pytree_checkpoint":
        return HANDLER
    return {**HANDLER, **MANAGER} if name in {*_MANAGER_OF_V0, "checkpoint_manager_perf"} else {}


def orbax_options(point: SweepPoint) -> dict[str, Any]:
    """Returns the options of a point that Orbax knows."""
    known = attributes(point)
    return {name: value for name, value in point.options.items() if name in known}


def why_no_code(benchmark: str) -> str:
    """Returns why there is no code for options of a benchmark."""
    if not is_builtin(benchmark):
        return "only the benchmark's class knows what its options set"
    return WITHOUT_CODE.get(short_name(benchmark), "none of its options is Orbax's")


def as_code(point: SweepPoint) -> str:
    """Returns Python that saves and loads as a point does, by the interface that it measures.

    Options that the suite gives are set. What else the benchmark has not as Orbax is a comment.
    Empty if no option of the point is known.
    """
    name, table = short_name(point.benchmark), attributes(point)
    if not orbax_options(point):
        return ""
    if name == "pytree_checkpoint":
        return _by_checkpointer(point, table)
    if table.keys() & MANAGER.keys() and name != "training_job":
        return _by_manager(point, table, standard=name in _MANAGER_OF_V0)
    return _by_v1(point, table)


def short_code(point: SweepPoint, varied: Collection[str]) -> str:
    """Returns code of v1 that sets what was varied and is not as Orbax has it, and saves.

    Empty for other interfaces, and for options that take more than an assignment.
    """
    name, table, own = short_name(point.benchmark), attributes(point), differing(point)
    changed = [option for option in own if option in varied]
    if name not in _V1 | _V1_LOADS or {"save_dtype", "background_keys"} & set(changed):
        return ""
    if not orbax_options(point):
        return ""
    call = "ocp.save(path, tree)"
    if name in _V1_LOADS:
        call = "restored = ocp.load(path, target)"
    elif point.options.get("async_enabled"):
        call = "response = ocp.save_async(path, tree)"
    if not changed:
        return call
    sets = (_assigned(table[option], point.options[option]) for option in changed)
    return "\n".join(["context = ocp.Context()", *sets, f"with context: {call}"])


def _assigned(attribute: Attribute, value: Any) -> str:
    return f"context.{attribute.path} = {attribute.code(value)}"


def _by_v1(point: SweepPoint, table: Mapping[str, Attribute]) -> str:
    options, name = point.options, short_name(point.benchmark)
    dtype, keys = options.get("save_dtype"), options.get("background_keys")
    lines = ["# Orbax v1"]
    if keys is not None:
        lines += ["import re", "import jax"]
    lines += ["import jax.numpy as jnp"] if dtype is not None else []
    if keys is not None:
        lines += ["from orbax.checkpoint._src.serialization import types"]
    lines += ["from orbax.checkpoint import v1 as ocp", ""]
    lines += _BACKGROUND.format(keys=keys).splitlines() if keys is not None else []
    lines += _STORED.format(dtype=dtype).splitlines() if dtype is not None else []
    lines += ["context = ocp.Context()"]
    if name == "safetensors_load":
        lines += ["context.checkpoint_layout = ocp.options.CheckpointLayout.SAFETENSORS"]
    lines += [
        f"{mark}{_assigned(attribute, value)}{end}"
        for mark, end, attribute, value in _written(
            point, {k: v for k, v in table.items() if k not in _TRAINING}
        )
    ]
    asynchronous = options.get("async_enabled", False)
    if name == "training_job":
        save = "save_async" if asynchronous else "save"
        lines += [
            "checkpointer = ocp.training.Checkpointer(",
            "    directory,",
            "    context=context,",
            *_arguments(point, table, "training"),
            ")",
            "with checkpointer:",
            f"    checkpointer.{save}(step, tree)  # after each step of a training",
            "with ocp.training.Checkpointer(directory, context=context) as checkpointer:",
            "    restored = checkpointer.load(checkpointer.latest.step, target)",
        ]
        return "\n".join(lines)
    lines += ["with context:"]
    if name not in _V1_LOADS:
        lines += (
            ["    response = ocp.save_async(path, tree)", "    response.result()  # later"]
            if asynchronous
            else ["    ocp.save(path, tree)"]
        )
    return "\n".join([*lines, "    restored = ocp.load(path, target)"])


def _by_checkpointer(point: SweepPoint, table: Mapping[str, Attribute]) -> str:
    asynchronous = point.options.get("async_enabled", False)
    kind = "AsyncCheckpointer" if asynchronous else "Checkpointer"
    waits = ["    checkpointer.wait_until_finished()  # later"] if asynchronous else []
    return "\n".join(
        [
            f"# Orbax v0, {kind}",
            *_handler(point, table),
            f"with ocp.{kind}(handler) as checkpointer:",
            "    checkpointer.save(path, args=ocp.args.PyTreeSave(tree))",
            *waits,
            "    restore_args = ocp.checkpoint_utils.construct_restore_args(target)",
            "    restored = checkpointer.restore(",
            "        path, args=ocp.args.PyTreeRestore(target, restore_args=restore_args)",
            "    )",
        ]
    )


def _by_manager(point: SweepPoint, table: Mapping[str, Attribute], *, standard: bool) -> str:
    lines, kind, handler = ["import orbax.checkpoint as ocp", ""], "Standard", ""
    restore = ["    restore = ocp.args.StandardRestore(target)"]
    if not standard:
        lines, kind, handler = _handler(point, table), "PyTree", ", item_handlers=handler"
        restore = [
            "    restore_args = ocp.checkpoint_utils.construct_restore_args(target)",
            "    restore = ocp.args.PyTreeRestore(target, restore_args=restore_args)",
        ]
    return "\n".join(
        [
            "# Orbax v0, CheckpointManager",
            *lines,
            *_call("options", "ocp.CheckpointManagerOptions", _arguments(point, table, "options")),
            f"with ocp.CheckpointManager(directory, options=options{handler}) as manager:",
            "    # After each step of a training:",
            f"    manager.save(step, args=ocp.args.{kind}Save(tree))",
            "    manager.wait_until_finished()  # at its end",
            *restore,
            "    restored = manager.restore(manager.latest_step(), args=restore)",
        ]
    )


def _handler(point: SweepPoint, table: Mapping[str, Attribute]) -> list[str]:
    """Returns imports, and the lines that make a `PyTreeCheckpointHandler`."""
    arrays, handler = _arguments(point, table, "arrays"), _arguments(point, table, "handler")
    imports, lines = ["import orbax.checkpoint as ocp", ""], list[str]()
    if any(not line.lstrip().startswith("#") for line in arrays):
        imports = ["import jax", "import numpy as np", *imports]
        lines += [*_call("arrays", "ocp.type_handlers.ArrayHandler", arrays), _REGISTRY]
        handler.append("    type_handler_registry=registry,")
    elif arrays:
        lines += ["# arrays: ocp.type_handlers.ArrayHandler with", *(line[4:] for line in arrays)]
    lines += _call("handler", "ocp.PyTreeCheckpointHandler", handler)
    if short_name(point.benchmark) == "pytree_checkpoint":
        lines += ['# Measured with a callback: leaves with an "a" in their path first.']
    return [*imports, *lines]


def _call(name: str, function: str, arguments: list[str]) -> list[str]:
    if not arguments:
        return [f"{name} = {function}()"]
    return [f"{name} = {function}(", *arguments, ")"]


def _arguments(point: SweepPoint, table: Mapping[str, Attribute], group: str) -> list[str]:
    own = {name: each for name, each in table.items() if each.path.startswith(f"{group}.")}
    return [
        f"    {mark}{attribute.argument}={attribute.code(value)},{end}"
        for mark, end, attribute, value in _written(point, own)
    ]


def _written(
    point: SweepPoint, table: Mapping[str, Attribute]
) -> Iterator[tuple[str, str, Attribute, Any]]:
    """Yields what is set, and as a comment what was measured and is not as Orbax has it."""
    for name, value in point.options.items():
        if name in table and name in point.given:
            yield "", "", table[name], value
        elif name in table and value != table[name].default:
            said = f"  # measured so; Orbax's default here is {table[name].default!r}"
            yield "# ", said, table[name], value


def as_suite(point: SweepPoint) -> str:
    """Returns a point as an entry of `benchmarks` in a suite file."""
    lines = ["benchmarks:", f"- generator: {point.benchmark}", "  options:"]
    given = point.given_options
    lines += [f"    {name}: {json.dumps(value)}" for name, value in given.items()]
    if not given:
        lines[-1] = "  options: {}"
    if point.storage is not None:
        lines.append(f"storage: {json.dumps(point.storage)}")
    if point.conditions.host_memory != "reused":
        lines += ["execution:", f"  host_memory: {point.conditions.host_memory}"]
    return "\n".join(lines)


def is_default(point: SweepPoint) -> bool:
    """Returns whether all options that Orbax knows are as Orbax has them, and there are some."""
    options = orbax_options(point)
    return bool(options) and not differing(point)


def differing(point: SweepPoint) -> dict[str, Any]:
    """Returns the options that are not as Orbax has them, with Orbax's own value."""
    known = attributes(point)
    return {
        name: known[name].default
        for name, value in orbax_options(point).items()
        if value != known[name].default
    }
