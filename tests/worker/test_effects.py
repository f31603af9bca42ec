"""Options that are proven to be in effect, or not, or neither."""

import dataclasses
import logging
import types

import pytest

from orbax_bench_core.benchmarks import save_restore, staged_save
from orbax_bench_core.testing import run_benchmark
from orbax_bench_core.worker.proofs import orbax_log

CHECKPOINT = {
    "spec": {
        "w": {"dtype": "float32", "shape": [64, 64], "sharding": ["x"]},
        "r": {"dtype": "bfloat16", "shape": [16, 8]},
        "step": "int",
    }
}
MESH = {"mesh_axes": ["r", "x"], "ici_parallelism": {"r": 2, "x": 4}}
SWITCHES = {
    "async_enabled": False,
    "use_ocdbt": False,
    "use_zarr3": False,
    "use_compression": False,
}


def run(folder, *, benchmark="save_restore", checkpoint=CHECKPOINT, **options):
    (outcome,) = run_benchmark(
        benchmark, str(folder), options=options, checkpoint=checkpoint, mesh=MESH
    )
    return outcome.record


def states(record):
    return {effect.option: effect.state for effect in record.effects}


def ignoring(monkeypatch, option, value):
    """Has an Orbax that ignores an option and does as with `value`."""
    real = save_restore.SaveRestoreOptions.orbax_context

    def context(self):
        object.__setattr__(self, option, value)
        return real(self)

    monkeypatch.setattr(save_restore.SaveRestoreOptions, "orbax_context", context)


@pytest.mark.slow
def test_what_is_proven_of_every_option_of_save_restore(tmp_path):
    record = run(tmp_path)
    assert record.status == "passed"
    assert set(states(record)) == {
        "async_enabled",
        "use_ocdbt",
        "use_zarr3",
        "use_compression",
        "use_replica_parallel",
        "enable_replica_parallel_separate_folder",
        "use_load_and_broadcast",
        "chunk_byte_size",
        "save_concurrent_gb",
        "restore_concurrent_gb",
    }
    assert set(states(record).values()) == {"in effect"}
    assert all(effect.proof for effect in record.effects)


@pytest.mark.slow
def test_what_is_proven_of_their_other_values(tmp_path):
    limits = {"save_concurrent_gb": 0.5, "restore_concurrent_gb": 0.25}
    record = run(tmp_path / "a", **SWITCHES, **limits, use_load_and_broadcast=True)
    assert record.status == "passed"
    assert set(states(record).values()) == {"in effect"}
    parallel = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    record = run(tmp_path / "b", **parallel, chunk_byte_size=1024)
    assert set(states(record).values()) == {"in effect"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "asked", "found"),
    [
        ("async_enabled", True, False),
        ("use_ocdbt", False, True),
        ("use_zarr3", True, False),
        ("use_compression", False, True),
        ("use_replica_parallel", True, False),
        ("use_load_and_broadcast", True, False),
        ("chunk_byte_size", 512, None),
        ("save_concurrent_gb", 0.5, None),
        ("restore_concurrent_gb", 0.5, 0.25),
    ],
)
def test_an_option_that_orbax_ignores_fails_the_repeat(option, asked, found, tmp_path, monkeypatch):
    if option == "async_enabled":
        measured = save_restore.measure_round_trip

        def blocking(metrics, context, tree):
            options = dataclasses.replace(context.options, async_enabled=False)
            return measured(metrics, dataclasses.replace(context, options=options), tree)

        monkeypatch.setattr(save_restore, "measure_round_trip", blocking)
    else:
        ignoring(monkeypatch, option, found)
    record = run(tmp_path, **{option: asked})
    assert record.status == "failed"
    assert record.error.type == "OptionWithoutEffect"
    assert record.error.message.startswith(f"{option}: ")
    assert "is not in effect: " in record.error.message
    assert states(record)[option] == "not in effect"
    assert record.samples  # what was measured is kept


@pytest.mark.slow
def test_what_is_left_at_its_default_need_not_do_anything(tmp_path, monkeypatch):
    ignoring(monkeypatch, "use_compression", False)
    record = run(tmp_path)
    assert record.status == "passed"
    assert states(record)["use_compression"] == "not in effect"


@pytest.mark.slow
def test_a_log_of_warnings_tells_limits_and_prints_nothing_more(tmp_path):
    log = logging.getLogger("absl")
    before, printed, handler = log.level, [], logging.Handler()
    handler.emit = printed.append
    log.addHandler(handler)
    log.setLevel(logging.WARNING)  # as after a benchmark that sets flags of Orbax
    try:
        record = run(tmp_path, save_concurrent_gb=0.5)
        assert log.level == logging.WARNING
    finally:
        log.setLevel(before)
        log.removeHandler(handler)
    assert states(record)["save_concurrent_gb"] == "in effect"
    assert not [line for line in printed if line.levelno < logging.WARNING]


@pytest.mark.slow
def test_nothing_to_split_is_not_proved(tmp_path):
    record = run(tmp_path, chunk_byte_size=2**20)
    assert record.status == "passed"
    assert states(record)["chunk_byte_size"] == "not proved"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "found", "state"),
    [
        ("bfloat16", "bfloat16", "in effect"),
        ("bfloat16", None, "not in effect"),
        (None, None, "not proved"),
    ],
)
def test_the_dtype_on_storage_is_read_from_the_files(asked, found, state, tmp_path, monkeypatch):
    real = staged_save.StagedSaveOptions.orbax_context

    def context(self):
        object.__setattr__(self, "save_dtype", found)
        return real(self)

    monkeypatch.setattr(staged_save.StagedSaveOptions, "orbax_context", context)
    if state == "not in effect":  # what is compared is then the tree as it was saved
        monkeypatch.setattr(staged_save, "_as_stored", lambda tree, dtype: None)
    record = run(tmp_path, benchmark="staged_save", save_dtype=asked)
    assert states(record)["save_dtype"] == state
    if state == "not in effect":
        assert record.error.type == "OptionWithoutEffect"
        assert "floating-point arrays on storage: bfloat16, float32" in record.error.message
    else:
        assert record.status == "passed"


@pytest.mark.slow
def test_a_limit_that_orbax_ignores_is_refused_with_what_makes_it_count(tmp_path):
    """Orbax limits the copies alone that its callback puts off, and copies all others at once."""
    record = run(tmp_path, benchmark="staged_save", device_host_concurrent_gb=0.0001)
    assert record.error.type == "OptionWithoutEffect"
    assert "device_host_concurrent_gb: 0.0001 is not in effect" in record.error.message
    assert "background_keys names those" in record.error.message


def test_reading_beside_the_devices_needs_pathways(tmp_path):
    checkpoint = {"path": str(tmp_path / "any"), "load_with_colocated_python": True}
    record = run(tmp_path / "run", checkpoint=checkpoint)
    assert (record.status, record.error.type) == ("skipped", "NotOnPathways")
    assert "load_with_colocated_python: true needs Pathways" in record.error.message
    assert record.samples == ()


@pytest.mark.parametrize("name", ["orbax_load", "pytree_checkpoint"])
def test_an_option_that_needs_pathways_is_skipped_elsewhere(tmp_path, name):
    record = run(tmp_path, benchmark=name, use_colocated_python=True)
    assert (record.status, record.error.type) == ("skipped", "NotOnPathways")


def test_of_a_class_of_ones_own_only_its_author_knows(tmp_path):
    path = "tests.support.own_options.OwnOptions"
    record = run(tmp_path, benchmark=path, use_ocdbt=True)
    assert states(record) == {"use_ocdbt": "not proved"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "state"), [(["device", "pinned_host"], "in effect"), (["device"], "not in effect")]
)
def test_pinned_memory_is_no_effect_where_devices_have_none(tmp_path, monkeypatch, kinds, state):
    """Orbax then copies as without it, and its log says the option all the same."""

    class Device:
        def addressable_memories(self):
            return [types.SimpleNamespace(kind=kind) for kind in kinds]

    monkeypatch.setattr(orbax_log, "_local_devices", lambda: [Device()])
    record = run(tmp_path, benchmark="staged_save", enable_pinned_host_transfer=True)
    (effect,) = [one for one in record.effects if one.option == "enable_pinned_host_transfer"]
    assert effect.state == state
    assert (record.status == "passed") == (state == "in effect")
