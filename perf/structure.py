"""Counts the code: `python -m perf.structure` prints each figure beside its target.

Lines include docstrings and comments, of the files that git has.
"""

import ast
import statistics
import subprocess
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
_SMALL: Final = 40


def figures() -> list[tuple[str, float, str]]:
    """Returns what is counted, the figure and its target, in the order that they are printed."""
    core = _files("orbax_bench_core")
    sizes = {path: _lines(path) for path in core}
    small = [
        path
        for path, size in sizes.items()
        if size < _SMALL and path.name not in ("__init__.py", "__main__.py")
    ]
    return [
        ("core lines", sum(sizes.values()), "65,000"),
        ("core files", len(core), "400"),
        ("median module, lines", statistics.median(sizes.values()), ""),
        ("modules under 40 lines", len(small), "0"),
        (
            "import lines of core, %",
            round(100 * sum(map(_import_lines, core)) / sum(sizes.values()), 1),
            "7",
        ),
        ("test lines", sum(map(_lines, _files("tests"))), "60,000"),
        ("lines of pipelines", sum(map(_lines, _files("pipelines"))), "4,500"),
        ("lines of perf", sum(map(_lines, _files("perf"))), "6,000"),
    ]


def _files(folder: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", f"{folder}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).exists()]


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _import_lines(path: Path) -> int:
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


if __name__ == "__main__":
    for what, figure, target in figures():
        print(f"{what:26} {figure:>9,}{f'   (at most {target})' if target else ''}")
