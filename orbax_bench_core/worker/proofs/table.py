"""The table of options: how each is proved, or why it cannot be."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from orbax_bench_core.worker.proofs import events, files, measured, orbax_log
from orbax_bench_core.worker.proofs.evidence import OptionEvidence, Proof, ProvenEffect, unproved

PROOFS: Final[Mapping[str, Proof]] = MappingProxyType(
    {**files.PROOFS, **measured.PROOFS, **events.PROOFS, **orbax_log.PROOFS}
)
"""How each option of the built-in benchmarks is proved; the names mean the same in all of them."""


_LOADS_ONLY: Final = "no save is measured; the checkpoint to load is saved before, and blocks"
_OF_A_FLAG: Final = "a flag of Orbax for the time of the repeat, of which it says nothing"
_OF_MEMORY: Final = "how arrays lie in memory leaves no trace"


NOT_PROVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "matrix_size": "the matrices live inside a step, and show in its time alone",
        "todelete_full_path": "it is refused outside gs://, and moves out of the repeat's folder",
        "expected_surge_gb": "Orbax logs the limit that follows from it, and not the surge",
        "deepcopy_host_arrays": "a copy in memory shows in the peak of memory alone",
        "skip_sync_file_validations": "a check that is left out leaves no trace",
        "timeout_secs": "it shows in saves that take longer alone",
        "wiped": "it is about the life after a kill: orbax-bench recovery does it",
        "kill": "it is about a kill: orbax-bench recovery does it",
        "peers_wait_s": "it is about a kill: orbax-bench recovery does it",
        "reference_sharding_path": _OF_MEMORY,
        "sharding_config_path": _OF_MEMORY,
        "reference_digests_path": (
            "a digest that differs fails the repeat, and nothing says which file it came from"
        ),
        "safetensors_max_over_read_ratio": "Orbax's loader of safetensors does not tell it",
        "orbax_load.load_async": "Orbax loads in the background safetensors alone",
        "safetensors_load.restore_concurrent_gb": "Orbax's loader of safetensors does not tell it",
        "safetensors_load.use_load_and_broadcast": "only false is allowed",
        "left_out_by": "the same arrays are loaded either way, and Orbax does not say why",
        "cancel_delay_secs": "it shows in times alone",
        "replica_axis_index": "a mesh fits one value; restored replicas are compared",
        "primary_replica_id": "which replica reads leaves no trace",
        "broadcast_memory_scaling_factor": (
            "Orbax logs how many bytes it takes, and not of how many"
        ),
        "use_distributed_process_id": _OF_A_FLAG,
        "experimental_use_distributed_id_for_mesh_consistency": _OF_A_FLAG,
        "experimental_orbax_use_distributed_process_id": _OF_A_FLAG,
        "inputs": "what a restored model is called with leaves no trace",
        "restore_devices": _OF_MEMORY,
        "training_job.use_load_and_broadcast": (
            "Orbax's Checkpointer of a training makes a handler that broadcasts and leaves it"
        ),
        "emergency_checkpoint_manager.local_max_to_keep": (
            "the first process, whose log is read, saves to persistent storage alone"
        ),
        "resharding.async_enabled": _LOADS_ONLY,
        "restore_and_broadcast.async_enabled": _LOADS_ONLY,
        "training_job.async_enabled": (
            "Orbax's Checkpointer of a training saves in the background and waits where it is false"
        ),
        "pytorch_dcp.reference_checkpoint_path": "PyTorch says nothing of what it reads",
        "save_per_thread_copy_ahead_mb": "PyTorch copies ahead off a GPU alone",
        "enable_plan_caching": "PyTorch keeps a plan in memory, and says nothing of it",
        "cache_staged_state_dict": "true needs CUDA",
        "enable_gcs_connector": "only false is allowed",
        "sync_files": "that a file was synchronized leaves no trace",
        "join_local_shards": "true is needed with several devices, and does nothing with one",
        "mmap": "how a file was read leaves no trace",
        "use_colocated": "only true is allowed",
        "device_count": "where a function ran leaves no trace",
    }
)
"""Why an option, or `benchmark.option`, is not proved."""


NOT_TRIED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lustre": "needs Lustre; the striping that files got is in the notes of the record",
        "snapshotter": "needs Pathways",
        "multihost_dispatchers": "needs cloudpickle, and hosts of devices other than this process",
    }
)
"""Why all options of a benchmark are not proved by any test."""


def prove(benchmark: str, option: str, asked: Any, evidence: OptionEvidence) -> ProvenEffect:
    """Returns the proof of an option of a built-in benchmark.

    Args:
        benchmark: Name of the built-in; empty for a class of somebody's own.
        option: Name of the option.
        asked: Its value in the point.
        evidence: What the repeat has left.
    """
    why = NOT_PROVED.get(f"{benchmark}.{option}")
    proof = PROOFS.get(option)
    if why is None and proof is not None:
        return proof.rule(asked, evidence)
    return unproved(why or NOT_PROVED.get(option, UNKNOWN))


UNKNOWN: Final = "neither files nor events nor logs are known to tell"
