"""Counts the code: `python -m perf.structure` prints each figure with its target.

Code lines are those that are not blank, comment, docstring or import: what is to become less.
Docstrings and comments are no cost, and are shown as shares.
"""

import ast
import collections
import statistics
import subprocess
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
_LONG: Final = 80
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def figures() -> list[tuple[str, float, str]]:
    """Returns what is counted, the figure and its target, in the order that they are printed."""
    core = {path: path.read_text() for path in _files("orbax_bench_core")}
    kinds = sum(map(_kinds, core.values()), collections.Counter[str]())
    trees = [ast.parse(text) for text in core.values()]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    long = [node for node in functions if (node.end_lineno or 0) - node.lineno >= _LONG]
    share = {kind: round(100 * count / kinds.total(), 1) for kind, count in kinds.items()}
    tests = (_kinds(path.read_text())["code"] for path in _files("tests"))
    return [
        ("code lines of core", kinds["code"], "at most 38,500"),
        ("files of core", len(core), ""),
        ("median module, lines", statistics.median(map(_length, core.values())), ""),
        ("docstrings, %", share["docstring"], "at least 15"),
        ("comments, %", share["comment"], "at least 3"),
        ("files of two subjects", sum(map(_islands, trees)), "0"),
        (f"functions over {_LONG} lines", len(long), "0"),
        ("code lines of tests", sum(tests), "at most 36,000"),
    ]


def _files(folder: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", f"{folder}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).exists()]


def _length(text: str) -> int:
    return len(text.splitlines())


def _kinds(text: str) -> collections.Counter[str]:
    """Returns how many lines are of each kind."""
    lines = [line.strip() for line in text.splitlines()]
    kinds = ["comment" if line.startswith("#") else "code" if line else "blank" for line in lines]
    for node in ast.walk(ast.parse(text)):
        is_list = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if is_list or isinstance(node, ast.Import | ast.ImportFrom):
            _paint(kinds, node, "import")
        body = getattr(node, "body", ())
        for one in body if isinstance(body, list) else ():
            value = one.value if isinstance(one, ast.Expr) else None
            # A docstring, or the text below what it describes.
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                _paint(kinds, one, "docstring")
    return collections.Counter(kinds)


def _paint(kinds: list[str], node: ast.stmt, kind: str) -> None:
    for index in range(node.lineno - 1, node.end_lineno or node.lineno):
        kinds[index] = kind


def _islands(tree: ast.Module) -> bool:
    """Returns whether constants begin twice or more after a definition, as of two subjects."""
    begun, before = 0, False
    for node in tree.body:
        constant = isinstance(node, ast.Assign | ast.AnnAssign)
        begun += constant and before
        if constant or isinstance(node, (ast.ClassDef, *_FUNCTIONS)):
            before = not constant
    return begun > 1


if __name__ == "__main__":
    for what, figure, target in figures():
        print(f"{what:26} {figure:>9,}{f'   ({target})' if target else ''}")
