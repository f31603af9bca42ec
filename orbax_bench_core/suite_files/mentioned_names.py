"""Names of Orbax in the code of the built-ins: which benchmark reaches which."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.sweep import BUILTINS

_V1: Final = "orbax.checkpoint.v1."


def callers() -> dict[str, tuple[str, ...]]:
    """Returns the built-ins whose code reaches each public name of v1."""
    definitions = _read_definitions()
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
def _read_definitions() -> dict[str, tuple[str, ...]]:
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
            for name in ([node.name] if isinstance(node, _DEFINES) else _find_assigned(node))
        }
        known = {**own, **_find_imported(tree.body)}
        for name, imported in known.items():  # names that a package passes on
            if imported != f"{module}.{name}":
                found[f"{module}.{name}"] = (imported,)
        for node in tree.body:
            for name in [node.name] if isinstance(node, _DEFINES) else _find_assigned(node):
                names = {**known, **_find_imported(ast.walk(node))}
                found[f"{module}.{name}"] = tuple(_find_mentioned(node, names))
    return found


_DEFINES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _find_assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _find_imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Returns the full name of what each import among some nodes gives a name."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return found


def _find_mentioned(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
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
