"""Migration from Orbax's own framework: the imports of modules, the generators of suites."""

import ast
import dataclasses
import difflib
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

import yaml

from orbax_bench_core import interface, measure
from orbax_bench_core.config import KeyPath, SuiteSource
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.sweep import BUILTINS, benchmark_of, is_builtin, names_of

FRAMEWORK: Final = "orbax.checkpoint._src.testing.benchmarks"

MOVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{FRAMEWORK}.core.core": "orbax_bench_core.authoring",
        f"{FRAMEWORK}.core.metric": "orbax_bench_core.measure",
    }
)
"""Modules of the framework, and those that take their places."""
_DOTTED: Final = re.compile(rf"\b({'|'.join(map(re.escape, MOVED))})\b")
_REACHED: Final = re.compile(
    r"(?<!orbax\.checkpoint\.)_src\.testing\.benchmarks\b|_src\.testing import .*\bbenchmarks\b"
)
_BY_PACKAGE: Final = (
    f"{FRAMEWORK} is reached through its package: import `core.core` and `core.metric`"
)

_NAMES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "orbax_bench_core.authoring": frozenset((*interface.__all__, "TestSuite")),
        "orbax_bench_core.measure": frozenset(measure.__all__),
    }
)
_HELPERS: Final = frozenset(
    f"{FRAMEWORK}.{name}"
    for name in (
        *("core.backends", "core.baseline", "core.checkpoint_generation", "core.configs"),
        *("core.device_mesh", "core.directory_setup", "core.inventory", "core.mesh_utils"),
        *("core.multihost", "core.pytree_utils", "v1.multi_slice_util"),
    )
)
"""Modules of the framework that need none of its missing packages."""

_RESULT_KEYS: Final = {
    "error": "raise it: the repeat fails with its traceback, and what was measured is kept",
    "path": "leave it out: the record lists the files under `context.path`",
    "local_path": "leave it out",
    "inventory": "give `inventory_path`, the folder whose files the record is to list",
}
_SWEEP: Final = "is not called here: the suite says what is swept, and `test_fn` is the interface"
_METHODS: Final = {
    "generate": _SWEEP,
    "generate_benchmark_name": _SWEEP,
    "_get_meshes": _SWEEP,
    "_get_options_product": _SWEEP,
    "__init__": "is called without arguments here: options and checkpoint are in the context",
}
"""Methods of the framework's base class, and what becomes of them."""
_OF_BASE: Final = frozenset(
    {"_checkpoint_configs", "_local_directory", "_mesh_configs", "_options", "_output_dir"}
    | (_METHODS.keys() - {"__init__"})
)
"""Attributes that the framework's base class gives its subclasses, and ours does not."""

_MEASURED: Final = 'a block is measured by `metrics.measure("save")`, a value kept by `record`'
_FAILED: Final = "a result that is returned is a success here: failures are raised"
_GONE: Final = {
    "_add_results": f"`Metrics` has no `_add_results` here: {_MEASURED}",
    "report": f"`Metrics` has no `report` here: {_MEASURED}",
    "time": f"`Metrics` has no `time` here: {_MEASURED}",
    "error": f"`TestResult` has no `error` here: {_FAILED}",
    "is_successful": f"`TestResult` has no `is_successful` here: {_FAILED}",
}
"""Attributes that objects of the framework have or had, and ours have not."""

_INSTEAD: Final = {"Benchmark": "a worker runs each sweep point"}


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Edit:
    """New text in place of that from `start` up to `end`, in characters."""

    start: int
    end: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Migration:
    """Outcome of a migration of a file; nothing is written yet.

    What is left to be done by hand comes with lines; notes are on what stays as it is, and works.
    """

    file: str
    before: str
    after: str
    left: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            self.file,
            self.file,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns a text with edits, none of which overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def migrate_module(text: str, file: str) -> Migration:
    """Migrates a module that defines benchmarks.

    Raises:
        UserError: The text is no Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = f"is no Python module: {getattr(error, 'msg', error)}"
        raise UserError(Problem(message, file=file, line=line)) from None
    found = _Module(text, file, tree)
    found.left.sort(key=lambda problem: problem.line or 0)
    return Migration(file, text, edited(text, found.edits), tuple(found.left), tuple(found.notes))


class _Module:
    """A module under migration: all edits, and what is left."""

    def __init__(self, text: str, file: str, tree: ast.Module) -> None:
        self._text, self._file = text, file
        self._lines = io.StringIO(text, newline="").readlines()  # as Python counts lines
        self._starts = (0, *itertools.accumulate(map(len, self._lines)))
        self.edits = [Edit(*found.span(), MOVED[found[0]]) for found in _DOTTED.finditer(text)]
        self.left: list[Problem] = []
        self.notes: list[Problem] = []
        # modules of ours by the name that they have in the file, dotted where it has no alias
        self._modules: dict[str, str] = {}
        self._objects: dict[str, str] = {}  # names of ours by the name that they have in the file
        nodes = list(ast.walk(tree))
        self._functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        # attributes that the module itself sets on some object
        self._set_here = {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        imports = [node for node in nodes if isinstance(node, ast.Import)]
        self._imported = {name.asname or name.name for node in imports for name in node.names}
        for node in nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self._import_from(node, node.module or "")
        for number, line in enumerate(self._lines, start=1):
            if _REACHED.search(line):
                self._say(f"{_BY_PACKAGE} by name, and migrate again", number)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                self._attribute(node)
            elif isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.ClassDef):
                self._class(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._constant(node.value, node.lineno)

    def _import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name in MOVED:
                self._modules[name.asname or name.name] = MOVED[name.name]
                if name.asname is None:  # the rest of Orbax came with it
                    at = self._at(name.lineno, name.col_offset)
                    self.edits.append(Edit(at, at, "orbax.checkpoint, "))
            elif f"{name.name}.".startswith(f"{FRAMEWORK}."):
                self._stays(name.name, node.lineno)

    def _import_from(self, node: ast.ImportFrom, module: str) -> None:
        if module in MOVED:
            for name in node.names:
                self._objects[name.asname or name.name] = name.name
                if name.name != "*":
                    self._check(name.name, MOVED[module], node.lineno)
        if module in MOVED or not f"{module}.".startswith(f"{FRAMEWORK}."):
            return
        kept, moved = [], []
        for name in node.names:
            target = MOVED.get(f"{module}.{name.name}")
            if target is None:
                kept.append(ast.unparse(name))
                self._stays(f"{module}.{name.name}", node.lineno)
                continue
            alias = name.asname or name.name
            self._modules[alias] = target
            moved.append(f"{target.rpartition('.')[2]} as {alias}")
        if not moved:
            return
        start, end = self._span(node)
        before = self._text[self._starts[node.lineno - 1] : start]
        statements = [f"from orbax_bench_core import {', '.join(moved)}"]
        statements += [f"from {module} import {', '.join(kept)}"] if kept else []
        between = "; " if before.strip() else f"\n{before}"
        self.edits.append(Edit(start, end, between.join(statements)))

    def _attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value)
        if owner in self._modules:
            self._check(node.attr, self._modules[owner], node.lineno)
        if (
            node.attr in _GONE
            and isinstance(node.ctx, ast.Load)
            and not {owner, owner.partition(".")[0]} & self._imported
            and node.attr not in self._set_here
            and (self._objects or self._modules)
        ):
            self._say(_GONE[node.attr], node.lineno)

    def _call(self, node: ast.Call) -> None:
        if self._is(node.func, "TestResult"):
            if node.args:
                start, _ = self._span(node.args[0])
                self.edits.append(Edit(start, start, "metrics="))
            for keyword in node.keywords:
                if keyword.arg in _RESULT_KEYS:
                    said = f"`{keyword.arg}` here: {_RESULT_KEYS[keyword.arg]}"
                    self._say(f"TestResult takes no {said}", keyword.value.lineno)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "measure":
            for keyword in node.keywords:
                if keyword.arg == "operation_name":
                    said = "`measure` calls its first argument `name` here"
                    self._say(said, keyword.value.lineno)

    def _class(self, node: ast.ClassDef) -> None:
        if not any(self._is(base, "BenchmarksGenerator") for base in node.bases):
            return
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name in _METHODS:
                self._say(f"`{item.name}` of a benchmark {_METHODS[item.name]}", item.lineno)
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Attribute)
                and ast.unparse(each.value) == "self"
                and each.attr in _OF_BASE - self._set_here - self._functions
            ):
                said = f"a benchmark has no `{each.attr}` here: take it from the context"
                self._say(said, each.lineno)

    def _constant(self, text: str, line: int) -> None:
        if (
            re.fullmatch(rf"{re.escape(FRAMEWORK)}[\w.]*", text)
            and not _DOTTED.match(text)
            and not is_builtin(benchmark_of(text))
        ):
            self._stays(text, line)

    def _is(self, node: ast.expr, name: str) -> bool:
        """Returns whether an expression is an object of ours, by whatever name."""
        if isinstance(node, ast.Subscript):
            return self._is(node.value, name)
        if isinstance(node, ast.Name):
            return self._objects.get(node.id) == name
        return (
            isinstance(node, ast.Attribute)
            and node.attr == name
            and ast.unparse(node.value) in self._modules
        )

    def _check(self, name: str, target: str, line: int) -> None:
        """Says where a module of ours has no such name."""
        if name not in _NAMES[target]:
            instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
            self._say(f"{target} has no `{name}`{instead}", line)

    def _stays(self, module: str, line: int) -> None:
        """Says what becomes of an import of the framework that has no counterpart."""
        if module in _HELPERS:
            message = (
                f"{module} stays: it works without the framework, and may change in any release"
            )
            self.notes.append(Problem(message, file=self._file, line=line))
            return
        for builtin in BUILTINS:
            if any(f"{path}.".startswith(f"{module}.") for path in names_of(builtin)):
                self._say(
                    f"{module} is the built-in `{builtin}` here: name that in the suite, or derive "
                    f"from {BUILTINS[builtin]}",
                    line,
                )
                return
        runner = module == f"{FRAMEWORK}.run_benchmarks"
        instead = ": `orbax_bench_core.run_benchmarks` takes its flags" if runner else ""
        self._say(f"{module} has no counterpart here{instead}", line)

    def _say(self, message: str, line: int) -> None:
        self.left.append(Problem(message, file=self._file, line=line))

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Returns where a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._at(node.lineno, node.col_offset)
        return begin, self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        """Returns a place in characters; `ast` counts bytes of UTF-8."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def migrate_suite(text: str, file: str) -> Migration:
    """Migrates a suite; its sweep points and their ids stay the same.

    Args:
        text: The suite as YAML.
        file: Its path, for messages.

    Returns:
        The edits, which leave comments and layout as they are, and what a person has to decide.

    Raises:
        UserError: It is no YAML.
    """
    source = SuiteSource(text, file)
    edits: list[Edit] = []
    left: list[Problem] = []
    for path, node in _values(_composed(text, file), ()):
        if path == ("simdevice",):
            left.append(
                source.problem(
                    "simulated devices need a plugin that is not published: remove the block, and "
                    "a mesh runs on simulated CPU devices",
                    path,
                )
            )
        if not isinstance(node, yaml.ScalarNode) or path[-1:] != ("generator",):
            continue
        if not node.value.startswith(f"{FRAMEWORK}."):
            continue
        found = benchmark_of(node.value)
        if is_builtin(found):
            quote = node.style or ""
            edit = Edit(node.start_mark.index, node.end_mark.index, f"{quote}{found}{quote}")
            edits.append(edit)
        else:
            left.append(
                source.problem(
                    f"{node.value} is no built-in benchmark here: `orbax-bench list` shows them; a "
                    "class of your own is named by its own path",
                    path,
                )
            )
    return Migration(file, text, edited(text, edits), tuple(left))


def _composed(text: str, file: str) -> yaml.Node | None:
    """Returns the document as nodes that know their places, by the parser in Python."""
    try:
        found: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise UserError(Problem(f"not a YAML file: {said}", file=file)) from None
    return found


def _values(node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, yaml.Node]]:
    """Yields every value of a document with its place; an anchor where it is defined alone."""
    seen: set[int] = set()
    waiting: list[tuple[KeyPath, yaml.Node]] = [] if node is None else [(path, node)]
    while waiting:
        where, one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield where, one
        if isinstance(one, yaml.MappingNode):
            waiting += [((*where, str(key.value)), value) for key, value in one.value]
        elif isinstance(one, yaml.SequenceNode):
            waiting += [((*where, index), item) for index, item in enumerate(one.value)]


_SUITES: Final = (".yaml", ".yml")


def migrate(text: str, file: str) -> Migration:
    """Migrates a Python module or a suite that was written for Orbax's own framework.

    Comments and layout stay: only what has another name here is replaced.

    Args:
        text: The file's content.
        file: Its name, which tells what it is, for messages.

    Raises:
        UserError: It is neither a Python module nor a suite.
    """
    suffix = PurePath(file).suffix
    if suffix == ".py":
        return migrate_module(text, file)
    if suffix in _SUITES:
        return migrate_suite(text, file)
    raise UserError(Problem("is neither a module (.py) nor a suite (.yaml)", file=file))
