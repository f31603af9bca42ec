"""Numbers of the code's structure: `python -m perf.structure` prints those that CONTRIBUTING keeps.

Lines include docstrings and comments. A module is reached from outside when code of another room
imports it instead of the room's door; second doors, listed in `pyproject.toml`, do not count.
"""

from __future__ import annotations

import ast
import statistics
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
CORE = "orbax_bench_core"
_DOORS: Final = 3


def numbers() -> dict[str, str]:
    """Returns each number by what it counts."""
    core = sorted((ROOT / CORE).rglob("*.py"))
    sizes = [_lines(path) for path in core]
    imports = sum(map(_import_lines, core))
    templates = [*(ROOT / CORE).rglob("*.jinja")]
    pipelines = sorted((ROOT / "pipelines").rglob("*.py"))
    compiled = [
        path for path in (ROOT / "pipelines").rglob("*.yaml") if ".settings" not in path.name
    ]
    reached = _reached()
    asks = [_asks(path) for path in core if path.name != "pair.py"]
    return {
        "core files": f"{len(core)}",
        "core lines": f"{sum(sizes):,}",
        "median module, lines": f"{statistics.median(sizes):.0f}",
        "p90 module, lines": f"{statistics.quantiles(sizes, n=10)[-1]:.0f}",
        "import lines in core": f"{imports:,} ({imports / sum(sizes):.1%})",
        "largest doors, names": _largest_doors(core),
        "templates, lines": f"{sum(map(_lines, templates))}",
        "pipelines, files and lines": f"{len(pipelines)}, {sum(map(_lines, pipelines)):,}",
        "committed pipeline packages, lines": f"{sum(map(_lines, compiled))}",
        "modules reached from outside their room": f"{len(reached)}",
        "places that ask point or pair": f"{sum(asks)} in {sum(map(bool, asks))} files",
    }


def _largest_doors(core: Iterable[Path]) -> str:
    """Returns the rooms with the most names in their doors."""
    sizes = {
        ".".join(path.parts[path.parts.index(CORE) + 1 : -1]): len(ast.literal_eval(node.value))
        for path in core
        if path.name == "__init__.py"
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    }
    most = sorted(sizes, key=lambda room: -sizes[room])[:_DOORS]
    return ", ".join(f"{room} {sizes[room]}" for room in most)


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _import_lines(path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text()))
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def _asks(path: Path) -> int:
    """Returns how often a module asks whether an entry of a sweep is a point or a pair."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    ours = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{CORE}.sweep")
        for alias in node.names
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    tests = [ast.unparse(call) for call in calls]
    return sum(name in ours & {"side", "sides", "baseline_point"} for name in names) + sum(
        test.startswith("isinstance(") and test.endswith(", Pair)") for test in tests
    )


def _reached() -> set[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    rooms, allowed = [], []
    for contract in contracts["contracts"]:
        if contract["type"] == "protected" and "." in contract["protected_modules"][0]:
            rooms.append(contract["allowed_importers"][0])
        allowed += [edge.split(" -> ")[1] for edge in contract.get("ignore_imports", ())]
    rooms.sort(key=len, reverse=True)
    found = set()
    for package in (CORE, "components", "pipelines", "perf"):
        for path in (ROOT / package).rglob("*.py"):
            me = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            me = f"orbax_bench_{me}" if package in ("components", "pipelines") else me
            for module in _imported(path):
                room = next((room for room in rooms if module.startswith(f"{room}.")), None)
                inside = room is not None and (me == room or me.startswith(f"{room}."))
                if room is not None and not inside and not _is_allowed(module, allowed):
                    found.add(module)
    return found - set(rooms)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _is_allowed(module: str, allowed: list[str]) -> bool:
    return any(module == to or Path(module).match(to) for to in allowed)


if __name__ == "__main__":
    for what, number in numbers().items():
        print(f"{what:42} {number}")
