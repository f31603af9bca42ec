"""Coverage of Orbax: which of its options and functions a suite can measure, and by what.

The installed Orbax says which there are, in a process of its own. What an option of a benchmark
sets is read from the tables of `orbax_bench_core.analysis.best`, and which functions a benchmark
calls from the source code of the built-ins.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis.best import orbax_attributes
from orbax_bench_core.sweep import BUILTINS, describe_options, load_class, printed_apart

FUNCTIONS: Final = "functions and classes of v1"
"""Group of the names that are no options."""

_PACKAGE: Final = "orbax_bench_core"
_V1: Final = "orbax.checkpoint.v1."
_OWN_CODE: Final = "code of the user's own, whose time is that code's"
_NAMING: Final = "names folders and files, which costs no time"
_PROCESSES: Final = "says which processes take part; the suite's mesh and processes decide that"
_FORM: Final = "the form of one small file"
_LEFT: Final = "deletes what a killed save has left; orbax-bench recovery measures such lives"
_NOT_YET: Final = "Orbax raises NotImplementedError: asynchronous loading is not yet supported"
_TYPE: Final = "a type, which is nothing to call"
_POLICY: Final = "checkpoint_policy sweeps policies, by the names that v0 has for the same classes"
_EARLIER: Final = "the earlier name of a function that is measured"

REASONS: Final[Mapping[str, str]] = {
    "asynchronous.post_finalization_callback": _OWN_CODE,
    "options.async_options.post_finalization_callback": _OWN_CODE,
    "options.async_options.barrier_sync_fn": _OWN_CODE,
    "options.should_save_fn": _OWN_CODE,
    "training.logger": _OWN_CODE,
    "arrays.callback": _OWN_CODE,
    "file.path_class": _OWN_CODE,
    "options.temporary_path_class": _OWN_CODE,
    "handler.handler_impl": _OWN_CODE,
    "handler.array_metadata_validator": _OWN_CODE,
    "checkpointables.registry": _OWN_CODE,
    "options.step_prefix": _NAMING,
    "options.step_format_fixed_length": _NAMING,
    "options.step_name_format": _NAMING,
    "training.step_name_format": _NAMING,
    "handler.aggregate_filename": _NAMING,
    "arrays.metadata_key": _NAMING,
    "multiprocessing.primary_host": _PROCESSES,
    "multiprocessing.active_processes": _PROCESSES,
    "multiprocessing.barrier_sync_key_prefix": _PROCESSES,
    "options.multiprocessing_options": _PROCESSES,
    "handler.multiprocessing_options": _PROCESSES,
    "arrays.primary_host": _PROCESSES,
    "arrays.replica_id": _PROCESSES,
    "options.async_options": "a group of options, which stand below on their own",
    "handler.type_handler_registry": "it takes the array handler, whose options stand below",
    "options.file_options": "a group of options, which Context has one by one",
    "options.atomicity_options": "a group of options, which Context has one by one",
    "handler.memory_limit_options": "a group of options, which Context has one by one",
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
    "checkpoint_layout": "safetensors_load loads the other layout; Orbax saves only its own",
    "pytree.saving.pytree_metadata_options": _FORM,
    "handler.pytree_metadata_options": _FORM,
    "training.custom_metadata": "a few words in a file that is written in any case",
    "training.cleanup_tmp_directories": _LEFT,
    "options.cleanup_tmp_directories": _LEFT,
    "array.saving.storage_options.dtype": "staged_save sweeps save_dtype, which sets it per array",
    "options.create": "makes one empty folder, before anything is measured",
    "options.read_only": "a manager that saves nothing",
    "array.loading.raise_array_data_missing_error": "it is about damage, not about time",
    "load_checkpointables_async": _NOT_YET,
    "AsyncResponse": _TYPE,
    "AbstractCheckpointable": _TYPE,
    "Checkpointable": _TYPE,
    "CheckpointMetadata": _TYPE,
    "CheckpointableHandler": _TYPE,
    "save_pytree": _EARLIER,
    "save_pytree_async": _EARLIER,
    "load_pytree": _EARLIER,
    "load_pytree_async": _EARLIER,
    "pytree_metadata": _EARLIER,
    "arrays.": _TYPE,
    "tree.": "a type, or a computation on trees that reads and writes nothing",
    "path.": _TYPE,
    "errors.": _TYPE,
    "multihost.": "a question to JAX that reads and writes nothing",
    "handlers.": _OWN_CODE,
    "training.preservation_policies.": _POLICY,
    "training.save_decision_policies.": _POLICY,
    "training.CheckpointMetadata": _TYPE,
    "training.RootMetadata": _TYPE,
}
"""Why no benchmark measures an option or a name, or (with a dot at its end) all names below it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxName:
    """One option, function or class of Orbax, and what measures it."""

    group: str  # what takes the option, or `FUNCTIONS`
    name: str
    default: str | None  # of an option, as Python writes it
    measured_by: tuple[str, ...]  # options as `benchmark.option`, or benchmarks that call it
    reason: str  # why nothing does, where that is known

    @property
    def is_open(self) -> bool:
        """Whether nothing measures it, and nobody has said why."""
        return not self.measured_by and not self.reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxCoverage:
    """All that the installed Orbax offers, and what measures it."""

    release: str
    names: tuple[OrbaxName, ...]


def orbax_coverage() -> OrbaxCoverage:
    """Asks the installed Orbax for its options and functions, and finds what measures them.

    Raises:
        UserError: The installed Orbax cannot be imported.
    """
    module = f"{_PACKAGE}.state.orbax_surface"
    said = json.loads(printed_apart(module, environment=os.environ, within_s=300))
    setters, callers = _setters(), _callers()
    names = [
        _name(group, path, default, setters.get(path, ()))
        for group, options in said["options"].items()
        for path, default in options.items()
    ]
    names += [_name(FUNCTIONS, name, None, callers.get(name, ())) for name in said["names"]]
    return OrbaxCoverage(release=said["release"], names=tuple(names))


def _name(group: str, name: str, default: str | None, by: tuple[str, ...]) -> OrbaxName:
    # Options of the array handler are told from the module `arrays` by their group.
    above = f"{name.rpartition('.')[0]}." if group == FUNCTIONS and "." in name else name
    reason = "" if by else REASONS.get(name, REASONS.get(above, ""))
    return OrbaxName(group=group, name=name, default=default, measured_by=by, reason=reason)


def _setters() -> dict[str, tuple[str, ...]]:
    """Returns the options of benchmarks that set each attribute of Orbax, by its path."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark, path in BUILTINS.items():
        attributes = orbax_attributes(benchmark)
        for option in describe_options(load_class(path)):
            for attribute in attributes.get(option.name, ()):
                found[attribute] = (*found.get(attribute, ()), f"{benchmark}.{option.name}")
    return found


def _callers() -> dict[str, tuple[str, ...]]:
    """Returns the built-ins whose code reaches each public name of v1."""
    definitions = _definitions()
    found: dict[str, tuple[str, ...]] = {}
    for benchmark, path in BUILTINS.items():
        seen, left = set(), [path]
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            # A method or a constant is reached with the class or module that has it.
            left += definitions.get(name) or definitions.get(name.rpartition(".")[0], ())
        for name in sorted(seen):
            if name.startswith(_V1):
                own = name.removeprefix(_V1)
                found[own] = (*found.get(own, ()), benchmark)
    return found


@functools.cache
def _definitions() -> dict[str, tuple[str, ...]]:
    """Returns the full names that each definition of the built-ins and of the state mentions."""
    root = Path(__file__).parents[1]
    found: dict[str, tuple[str, ...]] = {}
    for file in sorted([*root.glob("benchmarks/**/*.py"), *root.glob("state/*.py")]):
        parts = file.relative_to(root.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(file.read_text())
        own = {
            name: f"{module}.{name}"
            for node in tree.body
            for name in ([node.name] if isinstance(node, _DEFINES) else _assigned(node))
        }
        known = {**own, **_imported(tree.body)}
        for name, imported in known.items():  # names that a package passes on
            if imported != f"{module}.{name}":
                found[f"{module}.{name}"] = (imported,)
        for node in tree.body:
            for name in [node.name] if isinstance(node, _DEFINES) else _assigned(node):
                names = {**known, **_imported(ast.walk(node))}
                found[f"{module}.{name}"] = tuple(_mentioned(node, names))
    return found


_DEFINES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Returns the full name of what each import among some nodes gives a name."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def _mentioned(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Yields the full names in a piece of code."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            for full in _full_name(each.value, names):
                names[each.targets[0].id] = full
        yield from _full_name(each, names)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "_function":
            # Orbax's own, by the name that it has now, which is the first.
            yield f"{_V1}{ast.literal_eval(each.args[0])}"


def _full_name(node: ast.AST, names: Mapping[str, str]) -> list[str]:
    if not isinstance(node, (ast.Attribute, ast.Name)):
        return []
    root, dot, rest = ast.unparse(node).partition(".")
    return [f"{names[root]}{dot}{rest}"] if root in names else []
