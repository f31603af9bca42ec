"""Options and functions of Orbax that no benchmark measures, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OWN_CODE: Final = "code of the user's own, whose time is that code's"
_OWN_HANDLER: Final = "handlers of one's own types are measured by a benchmark of one's own"
_NAMING: Final = "names folders and files, which costs no time"
_PROCESSES: Final = "says which processes take part; the suite's mesh and processes decide that"
_FORM: Final = "the form of one small file"
_GROUP: Final = "a group of options, which stand below on their own"
_LEFT: Final = "deletes what a killed save has left; orbax-bench recovery measures such lives"
_NOT_YET: Final = "Orbax raises NotImplementedError: asynchronous loading is not yet supported"
_TYPE: Final = "a type, which is nothing to call"
_ON_TREES: Final = "a computation on trees that reads and writes nothing"
_OF_JAX: Final = "a question to JAX that reads and writes nothing"
_POLICY: Final = "checkpoint_policy sweeps it, by the name that v0 has for the same class"
_EARLIER: Final = "the earlier name of a function that is measured"
_NOT_READ: Final = (
    "Orbax 0.12 hands it on and reads it nowhere; staged_save sweeps background_keys, which sets "
    "what it reads instead"
)
_SERVICE: Final = (
    "it takes the position of a data set; copies of the state to storage are made by the "
    "replicator of the platform (multi-tier checkpointing of GKE), which is no part of Orbax"
)


_SHIFT: Final = "shifts which steps are saved, and not what a save costs"
_ITERATOR: Final = "a type; checkpointables saves and loads an object of it"


def _same(option: str) -> str:
    return f"{option} sweeps it: Orbax hands both on to the same place"


def _by_policy(policy: str) -> str:
    return f"Orbax makes a policy {policy} of it, which checkpoint_policy sweeps"


REASONS: Final[Mapping[str, str]] = {
    # Of v1's context.
    "asynchronous.post_finalization_callback": _OWN_CODE,
    "file.path_class": _OWN_CODE,
    "checkpointables.registry": _OWN_HANDLER,
    "multiprocessing.primary_host": _PROCESSES,
    "multiprocessing.active_processes": _PROCESSES,
    "multiprocessing.barrier_sync_key_prefix": _PROCESSES,
    **dict.fromkeys(
        (
            f"array.loading.load_and_broadcast_options.{name}"
            for name in (
                "replica_axis_index",
                "primary_replica_id",
                "broadcast_memory_limit_bytes",
                "broadcast_memory_scaling_factor",
            )
        ),
        "single_replica sweeps it, as an argument of v0's handler that broadcasts",
    ),
    "array.loading.raise_array_data_missing_error": "it is about damage, not about time",
    "array.loading.enable_padding_and_truncation": (
        "lets a target have other shapes than were saved, which is an error otherwise"
    ),
    "array.saving.storage_options.dtype": "staged_save sweeps save_dtype, which sets it per array",
    "array.saving.storage_options.shard_axes": (
        "says along which axes chunks are cut, array by array; chunk_byte_size sweeps their size"
    ),
    "array.saving.array_metadata_store": (
        "array_handler sweeps use_metadata_store, which gives v0's handler the same store or none"
    ),
    "atomicity.allow_legacy_atomic_rename": (
        "says which earlier checkpoints count as complete; a save writes the same"
    ),
    "checkpoint_layout": "safetensors_load loads the other layout; Orbax saves only its own",
    "deletion.gcs_deletion_options.todelete_full_path": (
        "deleter sweeps todelete_full_path of v0's manager, which moves checkpoints in the same way"
    ),
    "memory.is_prioritized_key_fn": _NOT_READ,
    "pytree.saving.pytree_metadata_options": _FORM,
    # Of v1's Checkpointer of a training, which makes a manager of v0.
    "training.step_name_format": _NAMING,
    "training.custom_metadata": "a few words in a file that is written in any case",
    "training.cleanup_tmp_directories": _LEFT,
    "training.lightweight_initialize": _same("checkpoint_manager.lightweight_initialize"),
    "training.logger": _OWN_CODE,
    # Of v0's manager.
    "options.keep_time_interval": _by_policy("EveryNSeconds"),
    "options.save_on_steps": _by_policy("SpecificStepsPolicy"),
    "options.keep_checkpoints_without_metrics": (
        "checkpoint_manager saves metrics with each checkpoint as soon as best_fn asks for them"
    ),
    "options.prevent_write_metrics": (
        "leaves out the small file of metrics, which checkpoint_manager writes with best_fn alone"
    ),
    "options.save_root_metadata": "one small file, written once, when a manager is made",
    "options.enable_should_save_is_saving_in_progress_check": (
        "a workaround that its documentation forbids without approval by Orbax's developers"
    ),
    "options.single_host_load_and_broadcast": (
        "emergency_checkpoint_manager sweeps it, as an option of its manager of persistent storage"
    ),
    "options.should_save_fn": _OWN_CODE,
    "options.temporary_path_class": _OWN_CODE,
    "options.step_prefix": _NAMING,
    "options.step_format_fixed_length": _NAMING,
    "options.step_name_format": _NAMING,
    "options.multiprocessing_options": _PROCESSES,
    "options.async_options": _GROUP,
    "options.async_options.post_finalization_callback": _OWN_CODE,
    "options.async_options.barrier_sync_fn": _OWN_CODE,
    "options.async_options.timeout_secs": _same("staged_save.timeout_secs"),
    "options.async_options.create_directories_asynchronously": _same(
        "staged_save.create_directories_asynchronously"
    ),
    "options.file_options": "a group of options, which Context has one by one",
    "options.atomicity_options": "a group of options, which Context has one by one",
    "options.cleanup_tmp_directories": _LEFT,
    "options.create": "makes one empty folder, before anything is measured",
    "options.read_only": "a manager that saves nothing",
    # Of v0's handlers.
    "handler.type_handler_registry": "it takes the array handler, whose options stand below",
    "handler.handler_impl": _OWN_CODE,
    "handler.array_metadata_validator": _OWN_CODE,
    "handler.aggregate_filename": _NAMING,
    "handler.multiprocessing_options": _PROCESSES,
    "handler.memory_limit_options": "a group of options, which Context has one by one",
    "handler.pytree_metadata_options": _FORM,
    "handler.is_prioritized_key_fn": _NOT_READ,
    "arrays.callback": _OWN_CODE,
    "arrays.metadata_key": _NAMING,
    "arrays.primary_host": _PROCESSES,
    "arrays.replica_id": _PROCESSES,
    **{
        f"arrays.{name}": _same(f"staged_save.{name}")
        for name in (
            "min_slice_bytes_for_replica_parallel",
            "max_replicas_for_replica_parallel",
            "enable_write_sharding_file",
        )
    },
    # Of managers of local disks.
    "emergency.local": _GROUP,
    "emergency.persistent": _GROUP,
    "p2p.local": _GROUP,
    "p2p.persistent": _GROUP,
    "emergency.step_name_format": _NAMING,
    "p2p.step_name_format": _NAMING,
    "replicator.step_name_format": _NAMING,
    "emergency.local.should_save_fn": _OWN_CODE,
    "emergency.persistent.should_save_fn": _OWN_CODE,
    "replicator.should_save_fn": _OWN_CODE,
    **dict.fromkeys(
        (
            f"emergency.{tier}.{kind}_policy"
            for tier in ("local", "persistent")
            for kind in ("save_decision", "preservation")
        ),
        "it takes policies, which checkpoint_policy sweeps",
    ),
    "emergency.cleanup_tmp_directories": _LEFT,
    "emergency.enable_async_checkpointing": _same("checkpoint_manager.async_enabled"),
    "emergency.async_options": "it takes AsyncOptions of v0, which stand above",
    "emergency.multiprocessing_options": "how long processes wait before they give each other up",
    "emergency.local.read_only": "a manager that saves nothing",
    "emergency.local.debug_use_full_global_mesh": "for debugging Orbax itself",
    "emergency.persistent.keep_period": _same("checkpoint_manager.keep_period"),
    "p2p.local.save_interval_offset_steps": _SHIFT,
    "p2p.persistent.save_interval_offset_steps": _SHIFT,
    "replicator.enable_async_checkpointing": _same("checkpoint_manager.async_enabled"),
    "replicator.save_concurrent_gb": _same("pytree_checkpoint.save_concurrent_gb"),
    "replicator.restore_concurrent_gb": _same("pytree_checkpoint.restore_concurrent_gb"),
    "replicator.use_colocated_python": "needs Pathways",
    "replicator.manager.persistent_directory": _SERVICE,
    "replicator.manager.handler_registry": _OWN_HANDLER,
    # Functions and classes of v1.
    **dict.fromkeys(
        (
            *("AbstractCheckpointable", "AsyncResponse", "Checkpointable", "CheckpointMetadata"),
            *("CheckpointableHandler", "arrays.AbstractArray", "arrays.AbstractShardedArray"),
            *("errors.DeletionInProgressError", "errors.DeletionRecoveryError"),
            *("errors.InvalidLayoutError", "handlers.AbstractCheckpointable"),
            *("handlers.Checkpointable", "handlers.CheckpointableHandler"),
            *("path.PathAwaitingCreation", "training.CheckpointMetadata", "training.RootMetadata"),
            "training.preservation_policies.PreservationContext",
            "training.preservation_policies.PreservationPolicy",
            "training.save_decision_policies.DecisionContext",
            "training.save_decision_policies.SaveDecisionPolicy",
            *("tree.PyTree", "tree.PyTreeOf"),
        ),
        _TYPE,
    ),
    "StatefulCheckpointable": _ITERATOR,
    "handlers.StatefulCheckpointable": _ITERATOR,
    "arrays.to_shape_dtype_struct": _ON_TREES,
    "tree.merge": _ON_TREES,
    "is_orbax_checkpoint": "looks for the files for which each load looks before it reads",
    "load_checkpointables_async": _NOT_YET,
    "save_pytree": _EARLIER,
    "save_pytree_async": _EARLIER,
    "load_pytree": _EARLIER,
    "load_pytree_async": _EARLIER,
    "pytree_metadata": _EARLIER,
    "multihost.is_pathways_backend": _OF_JAX,
    "multihost.is_primary_host": _OF_JAX,
    "multihost.process_count": _OF_JAX,
    "multihost.process_index": _OF_JAX,
    "multihost.sync_global_processes": "waits for other processes, as every save does by itself",
    "handlers.CheckpointableHandlerRegistry": _OWN_HANDLER,
    "handlers.global_registry": _OWN_HANDLER,
    "handlers.register_handler": _OWN_HANDLER,
    "handlers.PyTreeHandler": "saves and loads every tree, without being named",
    "handlers.ProtoHandler": "writes one message to a file, as JsonHandler does in checkpointables",
    **dict.fromkeys(
        (
            *(
                f"training.preservation_policies.{name}"
                for name in (
                    "AnyPreservationPolicy",
                    "BestN",
                    "CustomSteps",
                    "EveryNSeconds",
                    "EveryNSteps",
                    "EveryNStepsClosest",
                    "LatestDuration",
                )
            ),
            *(
                f"training.save_decision_policies.{name}"
                for name in (
                    "AnySavePolicy",
                    "ContinuousCheckpointingPolicy",
                    "InitialSavePolicy",
                    "PreemptionCheckpointingPolicy",
                    "SpecificStepsPolicy",
                )
            ),
        ),
        _POLICY,
    ),
    "training.preservation_policies.PreserveAll": (
        "keeps all, as LatestN without n, which checkpoint_policy sweeps"
    ),
}
"""Why no benchmark measures an option or a name."""
