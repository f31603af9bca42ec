"""Each option that a built-in benchmark may sweep, by what the worker proves of two values."""

import collections
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import yaml

from orbax_bench_core.authoring import BenchmarkOptions
from orbax_bench_core.sweep import BUILTINS, short_name, sweepable_axes
from orbax_bench_core.testing import run_benchmark
from orbax_bench_core.worker.proofs import NOT_PROVED, NOT_TRIED

ALIKE = [field.name for field in dataclasses.fields(BenchmarkOptions)]
"""Options that the worker heeds, and no benchmark: shown of one benchmark."""
ON_PATHWAYS = ("use_colocated_python",)
"""Options whose true no test can try."""

ON = {
    "async_enabled": True,
    "use_ocdbt": True,
    "use_zarr3": True,
    "use_compression": True,
    "use_replica_parallel": True,
    "enable_replica_parallel_separate_folder": True,
    "use_load_and_broadcast": True,
    "chunk_byte_size": 1024,
    "save_concurrent_gb": 0.5,
    "restore_concurrent_gb": 0.5,
    "metric_tracemalloc_enabled": True,
}
OFF = {**dict.fromkeys(ON, False), "chunk_byte_size": None}
OFF |= {"save_concurrent_gb": 0.25, "restore_concurrent_gb": 0.25}
LOADING = ("use_load_and_broadcast", "restore_concurrent_gb", "metric_tracemalloc_enabled")
TREE = tuple(set(ON) - {"use_load_and_broadcast", "chunk_byte_size"})
ARRAY = tuple(name for name in TREE if name.startswith(("use_o", "use_z", "use_r", "enable_r")))


def both(*names, on=None, off=None):
    """Returns two entries of a benchmark: what differs in them is shown of both."""
    names = names or tuple(ON)
    return [
        {name: ON[name] for name in names} | (on or {}),
        {name: OFF[name] for name in names} | (off or {}),
    ]


def sharding_file(folder):
    mesh = {"shape": [2, 4], "axes": ["replica", "model"]}
    entries = {
        name: {"shape": shape, "dtype": "float32", "sharding": {"mesh": mesh, "spec": spec}}
        for name, shape, spec in (
            ("array", [256, 64], ["model"]),
            ("nested.replicated", [64, 64], []),
        )
    }
    file = folder / "sharding.json"
    file.write_text(json.dumps(entries))
    return str(file)


def policies(keep, interval):
    return {
        "preservation_policies": [{"policy_type": "LatestN", "n": keep}],
        "save_decision_policies": [
            {"policy_type": "FixedIntervalPolicy", "interval_steps": interval}
        ],
    }


DELETING = [
    policies(1, 1) | {"preservation_policies": [{"policy_type": kind, **given}]}
    for kind, given in (
        ("BestN", {"n": 1, "best_fn": "min"}),
        ("LatestDuration", {"duration_secs": 0.5}),
        ("CustomSteps", {"custom_steps": [1, 3]}),
        ("EveryNSteps", {"interval_steps": 1, "max_to_keep": 2}),
    )
]
STEPS = [
    {"save_interval_steps": 1, "max_to_keep": 3, "train_steps": 4},
    {"save_interval_steps": 2, "max_to_keep": 2, "train_steps": 6},
]


BACKGROUND = {"background_keys": ".", "device_host_concurrent_gb": 0.0001}
STAGES = [
    {
        "enable_pinned_host_transfer": True,
        "ocdbt_target_data_file_size": 16384,
        "min_slice_bytes_for_replica_parallel": 1024,
        "max_replicas_for_replica_parallel": 1,
        "enable_write_sharding_file": False,
        "enable_post_merge_validation": False,
        "path_permission_mode": "750",
        "atomicity": "commit_file",
        "host_arrays": False,
        "num_savings": 2,
        "create_directories_asynchronously": True,
    },
    {
        "save_dtype": "float16",
        "enable_pinned_host_transfer": False,
        "enable_write_sharding_file": True,
        "enable_post_merge_validation": True,
        "path_permission_mode": "700",
        "atomicity": "atomic_rename",
        "num_savings": 1,
        "create_directories_asynchronously": False,
    },
    {
        "chunk_byte_size": 1024,
        "ocdbt_target_data_file_size": 4096,
        "host_arrays": True,
    },
    {
        "use_replica_parallel": True,
        "min_slice_bytes_for_replica_parallel": 2048,
        "max_replicas_for_replica_parallel": 2,
    },
    BACKGROUND | {"background_keys": ["array", "."], "regulator_max_gb": None},
    BACKGROUND | {"device_host_concurrent_gb": 0.0002, "regulator_max_gb": [0.01, 0.02]},
    {"device_host_concurrent_gb": None, "background_keys": None},
    BACKGROUND | {"device_host_concurrent_gb": 0.0002},
]
"""Options of the stages of a save; null and `host_arrays` go without copies off a device."""


def entries(folder, checkpoint="ckpt", model="model"):
    """Returns what each benchmark is given, once for each point, on one process.

    Args:
        folder: Where digests go.
        checkpoint: A checkpoint of Orbax.
        model: A checkpoint of safetensors.
    """
    new, old = ({"reference_checkpoint_path": path} for path in (None, str(checkpoint)))
    replicas = {"reference_sharding_path": sharding_file(folder)}
    digests = [{"capture_digests_path": str(folder / f"digests_{i}")} for i in range(4)]
    torch = {"join_local_shards": True}
    return {
        "save_restore": [
            *both(),
            {"enable_trace": True, "trace_every_repeat": False},
            {"enable_trace": True, "trace_every_repeat": True},
            {"enable_trace": False},
        ],
        "train_interference": [
            *both(
                on={"steps_before": 2, "steps_after": 3}, off={"steps_before": 3, "steps_after": 2}
            ),
            {"matrix_size": 8, "max_steps_during": [1, 2]},
        ],
        "staged_save": both(on={"save_dtype": "bfloat16"} | STAGES[0], off=STAGES[1]) + STAGES[2:],
        "checkpoint_interval": [
            STEPS[0] | {"enable_async_checkpointing": True},
            STEPS[1] | {"enable_async_checkpointing": False},
        ],
        "training_job": both(
            on=STEPS[0] | {"compilation_cache": "warm", "matrix_size": 16},
            off=STEPS[1] | {"compilation_cache": "off"},
        ),
        "resharding": [*both(on=new | replicas, off=new), old],
        "restore_and_broadcast": [*both(on=new, off=new), old],
        "replica_parallel_multislice": both(
            on=new | {"num_savings": 1}, off=old | {"num_savings": 2}
        ),
        "orbax_load": both(
            *LOADING,
            on={"checkpoint_path": None} | digests[0],
            off={"checkpoint_path": str(checkpoint)} | digests[1],
        ),
        "safetensors_load": [
            {"metric_tracemalloc_enabled": True, "enable_xprof": True, "checkpoint_path": None}
            | {"load_async": True, "safetensors_read_chunk_mb": 0.01}
            | digests[2],
            {
                "metric_tracemalloc_enabled": False,
                "enable_xprof": False,
                "load_async": False,
                "checkpoint_path": str(model),
                "safetensors_read_chunk_mb": 0.02,
            }
            | digests[3],
        ],
        "pytree_checkpoint": both(
            *TREE,
            on={"save_device_host_concurrent_gb": 0.5, "enable_pinned_host_transfer": True},
            off={"save_device_host_concurrent_gb": None, "enable_pinned_host_transfer": False},
        ),
        "array_handler": both(
            *ARRAY, on={"use_metadata_store": True}, off={"use_metadata_store": False}
        ),
        "checkpoint_manager": [
            STEPS[0] | {"async_enabled": True, "keep_period": 2, "best_fn": "min"},
            STEPS[1] | {"async_enabled": False, "keep_period": 3, "best_fn": "max"},
            {"lightweight_initialize": [True, False]},
        ],
        "checkpoint_manager_perf": both(
            "use_ocdbt",
            "use_zarr3",
            on={"train_steps": 2, "enable_per_process_directory_creation": True},
            off={"train_steps": 3, "enable_per_process_directory_creation": False},
        ),
        "checkpoint_policy": [
            {"num_checkpoints": 6, "checkpoint_policies_options": [policies(2, 3)]},
            {"num_checkpoints": 8, "checkpoint_policies_options": [policies(3, 2)]},
            {"num_checkpoints": 4, "checkpoint_policies_options": DELETING},
        ],
        "deleter": [
            STEPS[0] | {"num_deletion_threads": 1, "enable_background_delete": True},
            STEPS[1] | {"num_deletion_threads": 2, "enable_background_delete": False},
            STEPS[0] | {"todelete_subdir": ["trash", "old"]},
        ],
        "checkpointables": [
            *both(
                "async_enabled",
                "metric_tracemalloc_enabled",
                on={"tree_items": 1},
                off={"tree_items": 2},
            ),
            {"deletion": ["blocking", "background"]},
        ],
        "partial_checkpoint": both(
            "async_enabled",
            "metric_tracemalloc_enabled",
            on={"pieces": 2, "loaded_share": 0.9},
            off={"pieces": None, "loaded_share": 0.3},
        ),
        "v0_cancel": [{"cancel_delay_secs": 0, "perform_cancellation": [True, False]}],
        "v1_cancel": [{"cancel_delay_secs": 0, "perform_cancellation": [True, False]}],
        "single_replica": both(
            "use_replica_parallel",
            on={"use_distributed_process_id": False, "broadcast_memory_limit_bytes": 1000},
            off={"use_distributed_process_id": False, "broadcast_memory_limit_bytes": None},
        ),
        "pytorch_dcp": both(
            "async_enabled",
            "metric_tracemalloc_enabled",
            on=torch | {"single_file_per_rank": True, "save_thread_count": 1},
            off=torch | {"single_file_per_rank": False, "save_thread_count": 1},
        )
        + [
            torch | {"single_file_per_rank": True, "save_thread_count": 2, "enable_async_save": on}
            for on in (True, False)
        ],
        "torch_save": both("metric_tracemalloc_enabled", on=torch, off=torch),
        "pytorch_safetensors": both("metric_tracemalloc_enabled", on=torch, off=torch),
    }


TIERS = [
    {
        "train_steps": 3,
        "local_save_interval_steps": 2,
        "local_max_to_keep": 2,
        "persistent_save_interval_steps": 2,
        "persistent_max_to_keep": 2,
    },
    {
        "train_steps": 2,
        "local_save_interval_steps": 1,
        "local_max_to_keep": 3,
        "persistent_save_interval_steps": 1,
        "persistent_max_to_keep": 3,
    },
]
ON_TWO_PROCESSES = {
    "emergency_checkpoint_manager": [
        TIERS[0] | {"single_host_load_and_broadcast": True},
        TIERS[1] | {"single_host_load_and_broadcast": False},
    ],
    "p2p_checkpoint_manager": TIERS,
    "training_job": [{"train_steps": 2, "save_interval_steps": 1, "tier": ["storage", "local"]}],
}
INPUTS = {"inputs": "nnx_tiny:inputs"}
SHARDS = INPUTS | {"save_devices": [2, 4]}
MODEL = {"nnx": "nnx_tiny:Tiny"}
NNX = {"nnx_restore": both(on=INPUTS | {"chunk_byte_size": 64}, off=INPUTS)}

ARRAYS = {
    "array": {"dtype": "float32", "shape": [256, 64], "sharding": ["model"]},
    "nested": {"replicated": {"dtype": "float32", "shape": [64, 64]}},
}
MESH = {
    "mesh_axes": ["replica", "model"],
    "dcn_parallelism": {"replica": 2},
    "ici_parallelism": {"model": 4},
}


ONE_AXIS = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}


def suite(benchmarks, *, checkpoint=None, processes=1):
    return yaml.safe_dump(
        {
            "suite_name": "options",
            "num_repeats": 1,
            "execution": {"retries": 0, "warmups": 0, "processes": processes},
            "checkpoint_config": checkpoint or {"spec": ARRAYS},
            "mesh_config": MESH,
            "benchmarks": [
                {"generator": benchmark, "options": options}
                for benchmark, each in benchmarks.items()
                for options in each
            ],
        }
    )


def shown(run, *flags):
    """Runs a suite; returns the proofs of each option in effect by benchmark, option and value."""
    process = run.start(*flags)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    found = collections.defaultdict(dict)
    for record in run.records().values():
        benchmark = short_name(record["point"]["benchmark"])
        for effect in record["effects"]:
            if effect["state"] == "in effect":
                proofs = found[benchmark, effect["option"]]
                proofs[json.dumps(effect["asked"])] = effect["proof"]
    return found


def wanted(benchmarks):
    """Returns the options of some benchmarks that have to be proved."""
    return {
        (axis.place, axis.name)
        for axis in sweepable_axes()
        if axis.place in benchmarks
        and axis.name not in (*ALIKE, *ON_PATHWAYS)
        and axis.name not in NOT_PROVED
        and str(axis) not in NOT_PROVED
    }


def missing(wanted, found):
    """Returns the options of which not two values are proved, by two proofs."""
    return {
        f"{benchmark}.{option}": found[benchmark, option]
        for benchmark, option in sorted(wanted)
        if len(set(found[benchmark, option].values())) < 2
    }


def test_no_option_is_forgotten(tmp_path):
    given = set()
    for benchmarks in (entries(tmp_path), ON_TWO_PROCESSES, NNX, {"nnx_restore": [SHARDS]}):
        for benchmark, each in benchmarks.items():
            for option in set().union(*each):
                values = [one[option] for one in each if option in one]
                if len(values) > 1 or isinstance(values[0], list):
                    given.add((benchmark, option))
    assert wanted(set(BUILTINS) - set(NOT_TRIED)) <= given
    assert {("save_restore", option) for option in ALIKE} <= given


@pytest.mark.nightly
def test_both_values_of_every_option_arrive(suite_run, tmp_path):
    """One run on one process; two points of each benchmark."""
    old = suite_run(suite({"save_restore": [{}], "safetensors_load": [{}]}))
    assert old.run("--keep-data")[0] == 0
    old.directory = old.directory.rename(tmp_path / "old")
    (checkpoint,) = old.directory.glob("*/repeat_0/ckpt")
    (model,) = old.directory.glob("*/repeat_0/model")
    own = entries(tmp_path, checkpoint, model)
    found = shown(suite_run(suite(own)))
    alike = {("save_restore", option) for option in ALIKE}
    assert missing(wanted(own) - {("training_job", "tier")} | alike, found) == {}


@pytest.mark.nightly
def test_both_values_of_what_needs_two_processes_arrive(suite_run):
    found = shown(suite_run(suite(ON_TWO_PROCESSES, processes=2)))
    own = wanted(set(ON_TWO_PROCESSES) - {"training_job"}) | {("training_job", "tier")}
    assert missing(own, found) == {}


@pytest.fixture
def tiny_model(tmp_path, monkeypatch):
    """A model of Flax beside the suite, and on the path."""
    pytest.importorskip("flax")
    shutil.copy(Path(__file__).parents[1] / "benchmarks" / "nnx_tiny.py", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.nightly
@pytest.mark.usefixtures("tiny_model")
def test_both_values_of_what_a_model_is_saved_with_arrive(suite_run):
    found = shown(suite_run(suite(NNX, checkpoint=MODEL)))
    assert missing(wanted(NNX) - {("nnx_restore", "save_devices")}, found) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_model")
def test_both_numbers_of_devices_that_a_model_is_saved_from_arrive(tmp_path):
    """On a mesh of one axis, where nothing has replicas; repeats run here, as in a worker."""
    blocks = {"options": SHARDS, "checkpoint": MODEL, "mesh": ONE_AXIS}
    proofs = {
        effect.asked: (effect.state, effect.proof)
        for outcome in run_benchmark("nnx_restore", str(tmp_path / "run"), **blocks)
        for effect in outcome.record.effects
        if effect.option == "save_devices"
    }
    assert proofs == {
        asked: ("in effect", f"an array was saved in {asked} shards") for asked in (2, 4)
    }
