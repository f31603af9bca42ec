"""`orbax-bench list --orbax`: what the installed Orbax offers, and what measures it."""

import dataclasses
import json

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.suite_files.unmeasured import REASONS
from orbax_bench_core.sweep import BUILTINS, load_class, options_class
from tests.support.processes import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def listed():
    done = run_cli("list", "--orbax", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def by_name(listed):
    return {one["name"]: one for one in listed["names"]}


def test_options_and_functions_name_what_measures_them(by_name):
    assert "save_restore.use_ocdbt" in by_name["array.saving.use_ocdbt"]["measured_by"]
    assert by_name["options.max_to_keep"]["default"] == "None"
    assert "deleter.max_to_keep" in by_name["options.max_to_keep"]["measured_by"]
    assert by_name["save_async"]["measured_by"][:2] == ["save_restore", "train_interference"]
    assert "resharding" not in by_name["save_async"]["measured_by"]
    assert by_name["training.Checkpointer"]["measured_by"] == ["training_job"]


def test_every_name_of_the_installed_orbax_has_a_benchmark_or_a_reason(listed):
    left = [
        f"{one['group']}: {one['name']}"
        for one in listed["names"]
        if not one["measured_by"] and not one["reason"]
    ]
    assert not left, (
        f"orbax-checkpoint {listed['release']} has names that nothing measures: make each an "
        "option of the benchmark where it belongs (CONTRIBUTING, 'A benchmark'), or say in REASONS "
        f"of orbax_bench_core/suite_files/unmeasured.py why none does: {', '.join(left)}"
    )


def test_a_reason_is_of_a_name_that_there_is_and_that_nothing_measures(listed):
    given = {one["reason"] for one in listed["names"]}
    names = {one["name"] for one in listed["names"] if not one["measured_by"]}
    assert set(REASONS) <= names
    assert set(REASONS.values()) <= given


def _flat(value, above=""):
    """All options of a context, by their path."""
    found = {}
    for name in [field.name for field in dataclasses.fields(value)]:
        each, path = getattr(value, name), f"{above}{name}"
        nested = dataclasses.is_dataclass(each) and "context.options" in type(each).__module__
        found |= _flat(each, f"{path}.") if nested else {path: each}
    return found


def _context(options):
    made = options.orbax_context()
    groups = {
        name: getattr(made, name)
        for name in ("array", "asynchronous", "atomicity", "file", "memory", "pathways")
    } | {name: getattr(made, name) for name in ("pytree", "safetensors", "deletion")}
    return {
        path: value
        for name, group in groups.items()
        for path, value in _flat(group, f"{name}.").items()
    }


VALUES = (True, False, 1, 0.5)
WORDS = {"save_dtype": ("bfloat16",)}


def _changes():
    """Pairs of an option and an attribute of Orbax's context that it changes, as observed."""
    for benchmark, path in BUILTINS.items():
        kind = options_class(load_class(path))
        if not hasattr(kind, "orbax_context"):
            continue
        needed = {"inputs": "module:function"} if benchmark == "nnx_restore" else {}
        usual = _context(kind(**needed))
        for field in dataclasses.fields(kind):
            for value in WORDS.get(field.name, VALUES):
                try:
                    found = _context(kind(**needed | {field.name: value}))
                except (UnmetNeed, ValueError, TypeError):
                    continue
                for attribute in found:
                    if repr(found[attribute]) != repr(usual[attribute]):
                        yield f"{benchmark}.{field.name}", attribute


def test_whatever_changes_the_context_is_listed_so_and_nothing_else(by_name):
    """Tables say which option sets what: contexts that are made with other values show it."""
    stores = "array.saving.array_metadata_store"  # an object of its own in every context
    observed = {pair for pair in _changes() if pair[1] != stores}
    groups = {attribute.partition(".")[0] for _, attribute in observed}
    with_context = {option.partition(".")[0] for option, _ in observed}
    said = {
        (option, name)
        for name, one in by_name.items()
        for option in one["measured_by"]
        if name.partition(".")[0] in groups and option.partition(".")[0] in with_context
    }
    on_pathways = {("orbax_load.use_colocated_python", "pathways.checkpointing_impl")}
    refused = {("safetensors_load.use_load_and_broadcast", "array.loading.use_load_and_broadcast")}
    # What is refused by itself, or has values that are no number, is not given here.
    not_given = {
        ("staged_save.regulator_max_gb", "memory.regulator_options"),
        ("staged_save.expected_surge_gb", "memory.expected_surge_bytes"),
        ("staged_save.path_permission_mode", "file.path_permission_mode"),
    }
    assert said - on_pathways - refused - not_given == observed
