"""Tests of a room may look inside it, and enter other rooms by their doors, as the code does."""

import ast
import fnmatch
import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
CORE = "orbax_bench_core"
CODE = ROOT / CORE
DOORLESS = ["analysis", "benchmarks", "cli", "exports"]
"""Folders of rooms, and two that nobody imports: classes named by path, and the command line."""
WIDE = {f"{CORE}/config", f"{CORE}/measure"}
"""Rooms with more names: the whole suite file, and the metrics that users import."""
EXEMPT = ["golden/*support.py"]
"""Files that hold what was before against what is now, and adapt to moved names in one place."""

CONTRACTS = [
    contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    if contract["type"] == "protected"
]
ROOMS = {module.removesuffix(".*") for one in CONTRACTS for module in one["protected_modules"]}
SECOND_DOORS = [
    tuple(ignored.split(" -> ")) for one in CONTRACTS for ignored in one.get("ignore_imports", ())
]


def imported(tree: ast.AST) -> Iterator[str]:
    """Yields the modules of ours that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for name in node.names:
                module = f"{node.module}.{name.name}"
                path = ROOT.joinpath(*module.split("."))
                is_module = path.is_dir() or path.with_suffix(".py").exists()
                yield module if is_module else str(node.module)


def room_of(module: str) -> str:
    """Returns the innermost room with a door that a module lies in; empty if none has one."""
    return max((room for room in ROOMS if module.startswith(f"{room}.")), key=len, default="")


def may_enter(own: str, module: str) -> bool:
    """Says whether tests of the room `own` may import a module."""
    room = room_of(module)
    if not room or module in ROOMS or own == room or own.startswith(f"{room}."):
        return True
    if room.startswith(f"{own}."):
        return True
    mine = (f"{own}.", f"{own.removeprefix(f'{CORE}.')}.")
    return any(
        fnmatch.fnmatch(module, target) and (importer == "**" or f"{importer}.".startswith(mine))
        for importer, target in SECOND_DOORS
    )


def violations(file: Path) -> list[str]:
    place = file.relative_to(TESTS)
    own = ".".join((CORE, *place.parent.parts))
    return [
        f"tests/{place} imports {module}: use `from {room_of(module)} import ...`, or move the "
        f"test to tests/{'/'.join(room_of(module).split('.')[1:])}"
        for module in sorted(set(imported(ast.parse(file.read_text()))))
        if module.startswith(CORE) and not may_enter(own, module)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(path.name for path in TESTS.iterdir() if path.is_dir()))
def test_tests_enter_other_rooms_by_their_doors(room):
    files = [
        file
        for file in sorted((TESTS / room).rglob("*.py"))
        if not any(fnmatch.fnmatch(str(file.relative_to(TESTS)), one) for one in EXEMPT)
    ]
    found = [message for file in files for message in violations(file)]
    assert not found, "\n".join(found)


DOORS = sorted((ROOT / CORE).rglob("__init__.py"))


def test_every_room_has_a_contract_for_its_door():
    """Without one anybody may import what lies behind it, and nothing says so."""
    doors = [
        door.parent for depth in ("*", "analysis/*") for door in CODE.glob(f"{depth}/__init__.py")
    ]
    rooms = {".".join(door.relative_to(ROOT).parts) for door in doors}
    assert rooms - ROOMS == {f"{CORE}.{name}" for name in DOORLESS}


def test_a_door_has_at_most_forty_names():
    wide = {str(door.parent.relative_to(ROOT)) for door in DOORS if len(names(door)) > 40}
    assert wide <= WIDE, "give a subject of it a room of its own"


def test_a_door_has_what_it_names():
    lacking = {str(door): missing for door in DOORS if (missing := names(door) - bound(door))}
    assert not lacking


@pytest.mark.parametrize("room", ["steps", "exports.site"])
def test_a_door_that_loads_late_finds_all_that_it_names(room):
    door = importlib.import_module(f"{CORE}.{room}")
    assert not [name for name in door.__all__ if not hasattr(door, name)]


def names(door: Path) -> set[str]:
    """Returns the names of a door; none of a folder that is no room."""
    for node in ast.parse(door.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def bound(door: Path) -> set[str]:
    """Returns the names that a door imports or defines, for type checkers alone or for all."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(door.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_a_way_past_a_door_is_found():
    assert not may_enter(f"{CORE}.cli", f"{CORE}.gate.plan")
    assert may_enter(f"{CORE}.gate", f"{CORE}.gate.plan")
    assert may_enter(f"{CORE}.cli", f"{CORE}.gate")
    assert may_enter(f"{CORE}.cli", f"{CORE}.gate.health"), "a second door"
    assert may_enter(f"{CORE}.measure", f"{CORE}.measure.collectors.base"), "a room inside"


def test_commands_that_are_printed_are_quoted():
    """A path in a command is put there by `errors.command`, which quotes it."""
    unquoted = re.compile(r"""f"[^"\n]*(?:`|\s|")orbax-bench [a-z][^"\n{]*\{""")
    found = [
        str(file)
        for package in ("orbax_bench_core", "pipelines", "components", "airflow_pipelines")
        for file in (ROOT / package).rglob("*.py")
        if unquoted.search(file.read_text())
    ]
    assert found == []
