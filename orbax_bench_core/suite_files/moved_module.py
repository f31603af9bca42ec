"""Migration of a module: imports of Orbax's own framework, whatever they are called there."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import itertools
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from orbax_bench_core import authoring, measure
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.suite_files.edits import FRAMEWORK, MOVED, Edit, Migration, edited
from orbax_bench_core.sweep import BUILTINS, benchmark_of, is_builtin, names_of

_NAMES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "orbax_bench_core.authoring": frozenset(authoring.__all__),
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

_CLASSES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "Metrics": measure.Metrics,
        "TestContext": authoring.TestContext,
        "TestResult": authoring.TestResult,
    }
)
"""Classes of which a module uses objects."""
_MEMBERS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "Metrics": frozenset(dir(measure.Metrics())),
        **{
            cls.__name__: frozenset([*dir(cls), *(field.name for field in dataclasses.fields(cls))])
            for cls in (authoring.TestContext, authoring.TestResult)
        },
    }
)
_GONE: Final = frozenset({"time", "report"})
"""Methods that `Metrics` of the framework has or had, and ours has not."""
_MEASURED: Final = 'a block is measured by `metrics.measure("save")`, a value kept by `record`'

_INSTEAD: Final = {"Benchmark": "a worker runs each sweep point"}


def migrate_module(text: str, file: str) -> Migration:
    """Migrates a module that defines benchmarks."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = f"is no Python module: {getattr(error, 'msg', error)}"
        raise UserError(Problem(message, file=file, line=line)) from None
    found = _Module(text, file, tree)
    found.look()
    return Migration(file, text, edited(text, found.edits), tuple(found.left), tuple(found.notes))


class _Module:
    """A module under migration."""

    def __init__(self, text: str, file: str, tree: ast.Module) -> None:
        self._text = text
        self._file = file
        self._tree = tree
        self._lines = io.StringIO(text, newline="").readlines()  # as Python counts lines
        self._starts = (0, *itertools.accumulate(map(len, self._lines)))
        self.edits: list[Edit] = []
        self.left: list[Problem] = []
        self.notes: list[Problem] = []
        self._modules: dict[str, str] = {}
        """Modules of ours by the name that they have in the file, dotted where it has no alias."""
        self._objects: dict[str, str] = {}
        """Names of ours by the name that they have in the file."""
        self._functions: dict[str, list[ast.FunctionDef]] = {}
        self._set_here: set[str] = set()
        """Attributes that the module itself sets on some object."""
        self._reused: set[str] = set()
        """Expressions that hold something else elsewhere in the module."""
        self._imported: set[str] = set()
        """Names of modules that the module imports."""
        self._held: dict[str, set[str]] = {name: set() for name in _CLASSES}
        """Expressions, and `.attribute` and `function()` of any owner, that are such an object."""

    def look(self) -> None:
        """Finds all edits, and what is left."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef):
                self._functions.setdefault(node.name, []).append(node)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self._set_here.add(node.attr)
            if isinstance(node, ast.Import):
                self._imported |= {name.asname or name.name for name in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level:
                self._import_from(node)
            elif isinstance(node, ast.Import):
                self._import(node)
        known = -1
        while known != (known := sum(map(len, self._held.values()))):
            for node in ast.walk(self._tree):
                self._bind(node)
        self._reused = {
            ast.unparse(target)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Assign) and self._class_of(node.value) is None
            for target in node.targets
        }
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Attribute):
                self._attribute(node)
            elif isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.ClassDef):
                self._class(node)
            elif isinstance(node, ast.Constant):
                self._constant(node)
        self.left.sort(key=lambda problem: problem.line or 0)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if module in MOVED:
            self._names_of(node, MOVED[module])
            return
        if module != FRAMEWORK and not module.startswith(f"{FRAMEWORK}."):
            for name in node.names:
                if f"{FRAMEWORK}.".startswith(f"{module}.{name.name}.") and "._src" in module:
                    self._reached(node)
            return
        kept, moved = [], []
        for name in node.names:
            target = MOVED.get(f"{module}.{name.name}")
            if target is None:
                kept.append(name)
                self._stays(f"{module}.{name.name}", node)
                continue
            alias = name.asname or name.name
            package, _, ours = target.rpartition(".")
            self._modules[alias] = target
            moved.append(f"from {package} import {ours}{'' if alias == ours else f' as {alias}'}")
        if not moved:
            return
        if kept:
            names = ", ".join(ast.unparse(name) for name in kept)
            moved.append(f"from {module} import {names}")
        self._replace(node, self._break(node).join(moved))

    def _names_of(self, node: ast.ImportFrom, target: str) -> None:
        for name in node.names:
            self._objects[name.asname or name.name] = name.name
            if name.name != "*" and name.name not in _NAMES[target]:
                self._missing(name.name, target, node)
        start, end = self._span(node)
        whole = self._text[start:end]
        at = start + whole.index(node.module or "", len("from"))
        self.edits.append(Edit(at, at + len(node.module or ""), target))

    def _import(self, node: ast.Import) -> None:
        ours = {name.name: MOVED[name.name] for name in node.names if name.name in MOVED}
        for name in node.names:
            if name.name in MOVED:
                self._modules[name.asname or name.name] = MOVED[name.name]
            elif name.name == FRAMEWORK or name.name.startswith(f"{FRAMEWORK}."):
                self._stays(name.name, node)
        if not ours:
            return
        lines = [f"import {ast.unparse(name)}" for name in node.names if name.name not in ours]
        for name in node.names:
            if name.name not in ours:
                continue
            alias = "" if name.asname is None else f" as {name.asname}"
            if not alias and self._speaks_of_orbax():
                lines.append("import orbax.checkpoint")  # came with it
            lines.append(f"import {ours[name.name]}{alias}")
        self._replace(node, self._break(node).join(dict.fromkeys(lines)))

    def _speaks_of_orbax(self) -> bool:
        """Returns whether the file uses `orbax` beside the modules that move."""
        names = sum(
            isinstance(node, ast.Name) and node.id == "orbax" for node in ast.walk(self._tree)
        )
        moved = sum(
            isinstance(node, ast.Attribute) and ast.unparse(node) in MOVED
            for node in ast.walk(self._tree)
        )
        return names > moved

    def _attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value)
        if owner in self._modules:
            target = self._modules[owner]
            if node.attr not in _NAMES[target]:
                self._missing(node.attr, target, node)
        held = None if owner in self._reused else self._class_of(node.value)
        if held is None and node.attr in _GONE and self._looks_like_metrics(node.value):
            held = "Metrics"
        if (
            held is not None
            and isinstance(node.ctx, ast.Load)
            and node.attr not in {*_MEMBERS[held], *self._set_here, "is_successful"}
        ):
            instead = f": {_MEASURED}" if held == "Metrics" else ""
            self._say(f"`{held}` has no `{node.attr}` here{instead}", node)
        if node.attr == "benchmarks" and owner.endswith("_src.testing"):
            self._reached(node)
        dotted = ast.unparse(node)
        if dotted in self._modules and "." in dotted:
            self._replace(node, self._modules[dotted])

    def _bind(self, node: ast.AST) -> None:
        """Notes what holds an object of ours after a statement, a parameter or a call."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._hold(target, self._class_of(node.value))
        elif isinstance(node, ast.AnnAssign):
            made = None if node.value is None else self._class_of(node.value)
            self._hold(node.target, self._annotated(node.annotation) or made)
        elif isinstance(node, ast.NamedExpr):
            self._hold(node.target, self._class_of(node.value))
        elif isinstance(node, ast.arg) and (held := self._annotated(node.annotation)):
            self._held[held].add(node.arg)
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and (held := self._annotated(item.annotation)):
                    self._held[held].add(f".{ast.unparse(item.target)}")
        elif isinstance(node, ast.FunctionDef):
            returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
            found = {self._class_of(value) for value in returned if value is not None}
            for returns in filter(None, {self._annotated(node.returns), *found}):
                self._held[returns].add(f"{node.name}()")
            if node.name == "test_fn" and len(node.args.args) == 2:
                self._held["TestContext"].add(node.args.args[1].arg)
        elif isinstance(node, ast.Call):
            self._bind_arguments(node)

    def _bind_arguments(self, call: ast.Call) -> None:
        """Notes which parameters of a function of this module are given an object of ours."""
        name = ast.unparse(call.func).rpartition(".")[2]
        for function in self._functions.get(name, ()):
            names = [each.arg for each in function.args.args]
            if isinstance(call.func, ast.Attribute) and names[:1] == ["self"]:
                names = names[1:]
            for parameter, value in zip(names, call.args, strict=False):
                if held := self._class_of(value):
                    self._held[held].add(parameter)
            for keyword in call.keywords:
                if keyword.arg in names and (held := self._class_of(keyword.value)):
                    self._held[held].add(keyword.arg)

    def _hold(self, target: ast.expr, held: str | None) -> None:
        if held is None:
            return
        self._held[held].add(ast.unparse(target))
        if isinstance(target, ast.Attribute):
            self._held[held].add(f".{target.attr}")

    def _class_of(self, node: ast.expr) -> str | None:
        """Returns the class of ours of which an expression is an object, as far as is known."""
        text = ast.unparse(node)
        forms = {text}
        if isinstance(node, ast.Attribute):
            forms.add(f".{node.attr}")
        elif isinstance(node, ast.Call):
            forms.add(f"{ast.unparse(node.func).rpartition('.')[2]}()")
        for name, held in self._held.items():
            if forms & held or (isinstance(node, ast.Call) and self._is(node.func, name)):
                return name
        return None

    def _annotated(self, annotation: ast.expr | None) -> str | None:
        """Returns the class of ours that an annotation names, also in quotes or a union."""
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                with contextlib.suppress(SyntaxError):
                    quoted = ast.parse(node.value, mode="eval").body
                    if found := self._annotated(quoted):
                        return found
            for name in _CLASSES:
                if isinstance(node, ast.expr) and self._is(node, name):
                    return name
        return None

    def _looks_like_metrics(self, node: ast.expr) -> bool:
        """Returns whether an object of unknown class is called metrics, in a module of a benchmark.

        It may be a parameter, or come from another module.
        """
        if not (self._objects or self._modules):
            return False
        name = ast.unparse(node)
        return name not in self._imported and "metrics" in name.rpartition(".")[2].lower()

    def _call(self, node: ast.Call) -> None:
        if self._is(node.func, "TestResult"):
            if node.args:
                start, _ = self._span(node.args[0])
                self.edits.append(Edit(start, start, "metrics="))
            for keyword in node.keywords:
                if keyword.arg in _RESULT_KEYS:
                    advice = _RESULT_KEYS[keyword.arg]
                    self._say(f"TestResult takes no `{keyword.arg}` here: {advice}", keyword.value)
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "is_successful":
            self._say("a result that is returned is a success here: failures are raised", node)
        elif isinstance(node.func, ast.Attribute):
            held = self._class_of(node.func.value)
            if held is not None:
                self._keywords(node, getattr(_CLASSES[held], node.func.attr, None))
        for name in ("Metrics", "TestContext"):
            if self._is(node.func, name):
                self._keywords(node, _CLASSES[name])

    def _keywords(self, call: ast.Call, called: Callable[..., object] | None) -> None:
        """Says which keywords of a call what is called here has not."""
        if called is None or not callable(called):
            return
        known = [name for name in inspect.signature(called).parameters if name != "self"]
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                name = ast.unparse(call.func)
                allowed = ", ".join(known)
                self._say(
                    f"`{name}` takes no `{keyword.arg}` here: it takes {allowed}", keyword.value
                )

    def _class(self, node: ast.ClassDef) -> None:
        if not any(self._is(base, "BenchmarksGenerator") for base in node.bases):
            return
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name in _METHODS:
                self._say(f"`{item.name}` of a benchmark {_METHODS[item.name]}", item)
        for each in ast.walk(node):
            if (
                isinstance(each, ast.Attribute)
                and ast.unparse(each.value) == "self"
                and each.attr in _OF_BASE - self._set_here - self._functions.keys()
            ):
                self._say(f"a benchmark has no `{each.attr}` here: take it from the context", each)

    def _constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str) or not node.value.startswith(FRAMEWORK):
            return
        if node.value in MOVED:
            self._say(f"a text names {node.value}; here that is {MOVED[node.value]}", node)
        elif re.fullmatch(r"[\w.]+", node.value) and not is_builtin(benchmark_of(node.value)):
            self._stays(node.value, node)

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

    def _missing(self, name: str, target: str, node: ast.stmt | ast.expr) -> None:
        instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
        self._say(f"{target} has no `{name}`{instead}", node)

    def _reached(self, node: ast.stmt | ast.expr) -> None:
        """Says that the framework is reached through a package, so that nothing was moved."""
        if not any(dotted.startswith(ast.unparse(node)) for dotted in self._modules):
            said = f"{FRAMEWORK} is reached through its package: import `core.core` and"
            self._say(f"{said} `core.metric` by name, and migrate again", node)

    def _stays(self, module: str, node: ast.stmt | ast.expr) -> None:
        """Says what becomes of an import of the framework that has no counterpart."""
        if module in _HELPERS:
            message = (
                f"{module} stays: it works without the framework, and may change in any release"
            )
            self.notes.append(Problem(message, file=self._file, line=node.lineno))
            return
        for builtin in BUILTINS:
            if any(f"{path}.".startswith(f"{module}.") for path in names_of(builtin)):
                self._say(
                    f"{module} is the built-in `{builtin}` here: name that in the suite, or derive "
                    f"from {BUILTINS[builtin]}",
                    node,
                )
                return
        runner = module == f"{FRAMEWORK}.run_benchmarks"
        instead = ": `orbax_bench_core.run_benchmarks` takes its flags" if runner else ""
        self._say(f"{module} has no counterpart here{instead}", node)

    def _say(self, message: str, node: ast.stmt | ast.expr) -> None:
        self.left.append(Problem(message, file=self._file, line=node.lineno))

    def _replace(self, node: ast.stmt | ast.expr, text: str) -> None:
        self.edits.append(Edit(*self._span(node), text))

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Returns where a node begins and ends, in characters; `ast` counts bytes of UTF-8."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._index(node.lineno, node.col_offset),
            self._index(node.end_lineno, node.end_col_offset),
        )

    def _index(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def _break(self, node: ast.stmt) -> str:
        """Returns what stands between two statements in the place of one."""
        line = self._lines[node.lineno - 1].encode()[: node.col_offset].decode()
        return "; " if line.strip() else f"\n{line}"
