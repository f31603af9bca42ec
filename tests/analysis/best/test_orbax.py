"""The code that is printed runs, and does what it says, with the Orbax that is installed."""

import dataclasses
import importlib.metadata
import inspect
import logging
import operator

import pytest

from orbax_bench_core.analysis.best.orbax_code import (
    ATTRIBUTES,
    HANDLER,
    MANAGER,
    RELEASE,
    as_code,
    as_suite,
    short_code,
    why_no_code,
)
from orbax_bench_core.measure import Sample
from orbax_bench_core.sweep import BUILTINS, load_class, options_class
from orbax_bench_core.worker.effects import EffectListener

pytestmark = pytest.mark.slow

FORMAT = {
    "use_ocdbt": False,
    "use_zarr3": False,
    "use_compression": False,
    "save_concurrent_gb": 1.0,
    "restore_concurrent_gb": 0.5,
}
CASES = [
    ("save_restore", {"use_ocdbt": True}),
    ("save_restore", {**FORMAT, "async_enabled": False, "use_replica_parallel": False}),
    ("save_restore", {"use_zarr3": True, "use_compression": True, "chunk_byte_size": 1024}),
    (
        "save_restore",
        {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True},
    ),
    ("save_restore", {"use_load_and_broadcast": True, "chunk_byte_size": None}),
    ("staged_save", {"save_dtype": "bfloat16"}),
    ("staged_save", {"background_keys": "n", "device_host_concurrent_gb": 1.0}),
    (
        "staged_save",
        {
            "enable_write_sharding_file": False,
            "enable_post_merge_validation": False,
            "enable_pinned_host_transfer": True,
            "path_permission_mode": "750",
            "atomicity": "commit_file",
        },
    ),
    ("training_job", {"use_ocdbt": False, "save_interval_steps": 2, "max_to_keep": 2}),
    ("training_job", {"async_enabled": False, "use_zarr3": False}),
    ("orbax_load", {"restore_concurrent_gb": 0.5}),
    ("safetensors_load", {"safetensors_read_chunk_mb": 1.0, "restore_concurrent_gb": 0.5}),
    ("pytree_checkpoint", {**FORMAT, "async_enabled": False, "save_device_host_concurrent_gb": 1}),
    ("pytree_checkpoint", {"use_replica_parallel": True, "use_zarr3": True}),
    ("checkpoint_manager", {"save_interval_steps": 2, "max_to_keep": 2, "async_enabled": False}),
    ("checkpoint_interval", {"save_interval_steps": 3, "enable_async_checkpointing": False}),
    ("checkpoint_manager_perf", {"use_ocdbt": False, "use_zarr3": True}),
    ("deleter", {"max_to_keep": 2, "num_deletion_threads": 2}),
]
STEPS = 4
SWITCHES = {"use_ocdbt", "use_zarr3", "use_compression", "use_replica_parallel"}
PROVEN = {*SWITCHES, *ATTRIBUTES, *HANDLER} - {"save_device_host_concurrent_gb"}
UNDECIDED = {("safetensors_load", "restore_concurrent_gb")}
"""Of which neither files nor events nor logs tell anything."""


@pytest.fixture
def builtin(make_point):
    """Makes a point of a built-in benchmark, with its defaults for all that is not given."""

    def make(name, given):
        fields = dataclasses.fields(options_class(load_class(BUILTINS[name])))
        defaults = {
            each.name: each.default for each in fields if each.default is not dataclasses.MISSING
        }
        return make_point(benchmark=name, options={**defaults, **given}, given=tuple(given))

    return make


@pytest.fixture
def tree():
    """Arrays that are split, and replicated, over the devices."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()).reshape(2, -1), ("r", "x"))
    split = NamedSharding(mesh, PartitionSpec("x"))
    return {
        "w": jax.device_put(jnp.arange(4096, dtype=jnp.float32).reshape(64, 64), split),
        "n": jax.device_put(jnp.arange(64, dtype=jnp.int32), split),
    }


@pytest.fixture
def orbax_log():
    """Orbax's own log at the level that a worker has."""
    log = logging.getLogger("absl")
    before = log.level
    log.setLevel(logging.INFO)
    yield
    log.setLevel(before)


def test_defaults_are_those_that_are_installed():
    import orbax.checkpoint as v0
    from orbax.checkpoint import v1 as ocp

    assert f"orbax-checkpoint {importlib.metadata.version('orbax-checkpoint')}" == RELEASE
    context = ocp.Context()
    found = {name: operator.attrgetter(each.path)(context) for name, each in ATTRIBUTES.items()}
    made = {
        "handler": v0.PyTreeCheckpointHandler,
        "arrays": v0.type_handlers.ArrayHandler,
        "options": v0.CheckpointManagerOptions,
    }
    of_v0 = {
        name: inspect.signature(made[each.path.split(".")[0]]).parameters[each.argument].default
        for name, each in {**HANDLER, **MANAGER}.items()
    }
    # None is taken for True except where JAX_PLATFORMS names GPUs.
    assert [each.pop("use_replica_parallel") for each in (found, of_v0)] == [None, None]
    for defaults, table in ((found, ATTRIBUTES), (of_v0, {**HANDLER, **MANAGER})):
        assert defaults == {name: table[name].default for name in defaults}


@pytest.mark.parametrize("name", BUILTINS)
def test_every_built_in_has_code_that_a_test_runs_or_a_sentence_why_not(builtin, name):
    point = builtin(name, {})
    assert as_code(point) or why_no_code(point.benchmark)
    alike = {"train_interference", "resharding", "restore_and_broadcast"}
    alike |= {"replica_parallel_multislice", "lustre", "nnx_restore"}
    if name in alike:
        of_save_restore = {
            **builtin("save_restore", {}).options,
            **{n: v for n, v in point.options.items() if n in ATTRIBUTES},
        }
        same = builtin("save_restore", of_save_restore).model_copy(update={"given": ()})
        assert as_code(point) == as_code(same)
    elif as_code(point):
        assert name in {case for case, _ in CASES}


def test_a_benchmark_of_ones_own_and_a_tier_have_a_sentence(builtin, make_point):
    own = make_point(benchmark="my.module.Mine", options={"use_ocdbt": True})
    assert as_code(own) == ""
    assert why_no_code(own.benchmark) == "only the benchmark's class knows what its options set"
    assert as_code(builtin("training_job", {"tier": "local"})) == ""
    assert "local disks" in why_no_code("training_job")


@pytest.fixture
def follow(tmp_path, tree, orbax_log):
    """Runs a snippet for a state, and says what is proven of the options of its point."""
    import jax
    from etils import epath
    from orbax.checkpoint import v1 as ocp

    from orbax_bench_core.benchmarks.support.safetensors import write_arrays

    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), tree
    )

    def run(point, code, *, loads=""):
        folder = epath.Path(tmp_path / str(len(list(tmp_path.iterdir()))))
        (folder / "steps").mkdir(parents=True)
        if loads == "orbax_load":
            ocp.save(folder / "ckpt", tree)
        elif loads == "safetensors_load":
            write_arrays(folder / "ckpt", tree)
        names = {"path": folder / "ckpt", "directory": folder / "steps"}
        names |= {"tree": tree, "target": target}
        listener = EffectListener(point.options)
        with listener.listening():
            for step in range(STEPS if "(step, " in code else 1):
                names["step"] = step
                exec(code, names)
        for name, leaf in tree.items():  # bfloat16 leaves 8 bits
            # Orbax broadcasts by a sum, which is int64 for int32 where JAX has 64 bits.
            broadcast = point.options.get("use_load_and_broadcast")
            assert broadcast or names["restored"][name].dtype == leaf.dtype
            assert jax.numpy.allclose(names["restored"][name], leaf, rtol=1e-2)
        found = listener.effects(
            point, folder, [Sample("load", 0, "0_time", 1.0, "s")], folder / "traces"
        )
        names["steps"] = sorted(int(each.name) for each in (folder / "steps").iterdir())
        return {each.option: each.state for each in found}, names

    return run


@pytest.mark.parametrize(("name", "given"), CASES)
def test_every_snippet_runs_and_what_it_names_is_in_effect(builtin, follow, name, given):
    point = builtin(name, given)
    code = as_code(point)
    proven, names = follow(point, code, loads=name)
    for option in given.keys() & PROVEN:
        assert proven[option] == "in effect" or (name, option) in UNDECIDED, (option, code)
    executed = "\n".join(line for line in code.splitlines() if line.lstrip()[:1] != "#")
    assert {option for option in SWITCHES if option in executed} == SWITCHES & given.keys()
    if names["steps"]:
        saved = list(range(0, STEPS, given.get("save_interval_steps", 1)))
        assert names["steps"] == saved[-given.get("max_to_keep", STEPS) :]
    if "CheckpointManager" in code:
        asked = {**point.options, "enable_async_checkpointing": _asynchronous(point.options)}
        swept = MANAGER.keys() & given.keys() - {"async_enabled"}
        for option in swept | {"enable_async_checkpointing"}:
            assert getattr(names["options"], option) == asked[option]
    elif "async_enabled" in point.options:
        assert ("save_async" in code or "AsyncCheckpointer" in code) == _asynchronous(point.options)
    if "v1" in code and "device_host_concurrent_gb" in given:
        assert names["context"].memory.transfer_concurrent_bytes == 2**30
    if "v1" in code and "restore_concurrent_gb" in given:
        assert names["context"].memory.read_concurrent_bytes == 2**29
    if name == "safetensors_load":
        assert names["context"].safetensors.read_chunk_bytes == 2**20


def test_the_short_code_saves_with_what_was_varied(builtin, follow):
    given = {"use_ocdbt": False, "use_zarr3": True, "async_enabled": False}
    point = builtin("save_restore", {**given, "use_replica_parallel": True})
    code = short_code(point, given)
    assert code.splitlines() == [
        "context = ocp.Context()",
        "context.array.saving.use_ocdbt = False",
        "with context: ocp.save(path, tree)",
    ]
    loads = "\nwith context: restored = ocp.load(path, target)"
    proven, _ = follow(point, f"from orbax.checkpoint import v1 as ocp\n{code}{loads}")
    assert (proven["use_ocdbt"], proven["use_zarr3"]) == ("in effect", "in effect")
    assert short_code(builtin("save_restore", {"use_ocdbt": True}), ("use_ocdbt",)) == (
        "response = ocp.save_async(path, tree)"
    )
    assert short_code(builtin("pytree_checkpoint", {"use_ocdbt": False}), ("use_ocdbt",)) == ""


def _asynchronous(options):
    return options.get("enable_async_checkpointing", options.get("async_enabled", True))


def test_the_comments_are_what_was_measured(builtin, follow):
    point = builtin("save_restore", {"use_ocdbt": True})
    code = as_code(point)
    assert "# context.array.saving.use_replica_parallel = False" in code
    assert "use_zarr3" not in code
    assert follow(point, code)[0]["use_replica_parallel"] == "not in effect"
    whole = code.replace("# context.", "context.")
    assert follow(point, whole)[0]["use_replica_parallel"] == "in effect"


def test_storage_and_host_memory_are_part_of_the_entry(make_point):
    from orbax_bench_core.config import Conditions

    point = make_point(storage="/data", conditions=Conditions(host_memory="fresh"))
    text = as_suite(point)
    assert 'storage: "/data"' in text
    assert "host_memory: fresh" in text
