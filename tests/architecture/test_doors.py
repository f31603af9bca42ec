"""Code and tests enter other rooms by their doors, the names in their `__init__`."""

import ast
import fnmatch
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
CORE = "orbax_bench_core"
CODE = ROOT / CORE
FOLDERS = {
    CORE: CORE,
    "components": "orbax_bench_components",
    "pipelines": "orbax_bench_pipelines",
    "airflow_pipelines": "orbax_bench_airflow",
    "perf": "perf",
}
"""Folders of code and the packages that they are imported as."""
DOORLESS = {"analysis", "benchmarks", "cli", "exports"}
"""Folders of rooms, and two that nobody imports: classes named by path, and the command line."""
WIDE = {f"{CORE}/config", f"{CORE}/measure"}
"""Rooms with more names: the whole suite file, and the metrics that users import."""
EXEMPT = ["golden/*support.py", "analysis/best/test_orbax.py"]
"""Files that compare with what was before, or compare printed code with the worker."""

ROOMS = {
    f"{CORE}.{'.'.join(door.parent.relative_to(CODE).parts)}"
    for door in CODE.rglob("*/__init__.py")
    if ".".join(door.parent.relative_to(CODE).parts) not in DOORLESS
} | {"orbax_bench_pipelines.definitions", "orbax_bench_pipelines.targets"}
SHARED = {f"{CORE}.benchmarks.support": f"{CORE}.benchmarks"}
"""Rooms without a door, and whose they are."""
SECOND_DOORS = [
    # Importers, what they may import past its room's door.
    ("**", f"{CORE}.gate.decide"),
    ("**", f"{CORE}.gate.health"),
    ("**", f"{CORE}.gate.judge"),
    ("**", f"{CORE}.plan.goodput"),  # a room of its own
    ("**", f"{CORE}.state.orbax_api"),
    ("**", f"{CORE}.experiments.releases"),  # a room of its own
    ("**", f"{CORE}.worker.page_cache"),
    ("**", f"{CORE}.worker.proofs"),  # a room of its own
    ("**", "orbax_bench_pipelines.targets.docker"),  # needs an engine's client
    ("**", "orbax_bench_pipelines.targets.local"),  # needs the steps of the library
    (f"{CORE}.benchmarks.nnx_restore", f"{CORE}.state.nnx"),  # flax is optional
    (f"{CORE}.benchmarks.support.pytorch", f"{CORE}.state.torch"),  # so is torch
    (f"{CORE}.testing.run", f"{CORE}.worker.repeat"),  # the door must not import JAX
    ("perf.gate", f"{CORE}.gate.*"),  # simulates each part
    ("perf.history", f"{CORE}.analysis.history.changes"),  # simulates the rule itself
]


def imported(tree: ast.AST) -> Iterator[str]:
    """Yields the modules of ours that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for name in node.names:
                module = f"{node.module}.{name.name}"
                yield module if module in MODULES else str(node.module)


def files_of(folder: str) -> Iterator[tuple[str, Path]]:
    """Yields the modules of a folder, by name."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        parts = file.relative_to(ROOT / folder).with_suffix("").parts
        yield ".".join((FOLDERS[folder], *(part for part in parts if part != "__init__"))), file


MODULES = dict(found for folder in FOLDERS for found in files_of(folder))


def room_of(module: str) -> str:
    """Returns the innermost room that a module lies in, past its door; empty if none."""
    return max((room for room in ROOMS if module.startswith(f"{room}.")), key=len, default="")


def may_enter(own: str, module: str) -> bool:
    """Says whether a module, or the tests of a room, `own` may import a module."""
    room = room_of(module)
    owner = SHARED.get(room, room)
    # The tests of a room may look into the rooms inside it too.
    if (
        not room
        or f"{own}.".startswith(f"{owner}.")
        or (own in ROOMS and room.startswith(f"{own}."))
    ):
        return True
    return any(
        fnmatch.fnmatch(module, target)
        and (importer == "**" or f"{own}.".startswith(f"{importer}.") or importer.startswith(own))
        for importer, target in SECOND_DOORS
    )


def violations(own: str, file: Path, of: str = "orbax_bench_") -> list[str]:
    return [
        f"{file.relative_to(ROOT)} imports {module}: use `from {room_of(module)} import ...`, or "
        "move it there"
        for module in sorted(set(imported(ast.parse(file.read_text()))))
        if module.startswith(of) and not may_enter(own, module)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_code_enters_other_rooms_by_their_doors(folder):
    found = [message for own, file in files_of(folder) for message in violations(own, file)]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(path.name for path in TESTS.iterdir() if path.is_dir()))
def test_tests_enter_other_rooms_by_their_doors(room):
    found = []
    for file in sorted((TESTS / room).rglob("*.py")):
        place = file.relative_to(TESTS)
        if not any(fnmatch.fnmatch(str(place), one) for one in EXEMPT):
            package = FOLDERS.get(room, f"{CORE}.{room}")
            found += violations(".".join((package, *place.parent.parts[1:])), file, CORE)
    assert not found, "\n".join(found)


DOORS = sorted(CODE.rglob("__init__.py"))


def test_a_door_has_at_most_forty_names():
    wide = {str(door.parent.relative_to(ROOT)) for door in DOORS if len(names(door)) > 40}
    assert wide <= WIDE, "give a subject of it a room of its own"


def test_a_door_has_what_it_names():
    lacking = {str(door): missing for door in DOORS if (missing := names(door) - bound(door))}
    assert not lacking


@pytest.mark.parametrize("room", ["experiments", "publishing"])
def test_a_door_that_loads_late_finds_all_that_it_names(room):
    door = importlib.import_module(f"{CORE}.{room}")
    given = names(Path(str(door.__file__)))
    assert given
    assert not [name for name in given if not hasattr(door, name)]


def names(door: Path) -> set[str]:
    """Returns the names of a door: `__all__`, or what is imported `as` itself."""
    tree = ast.parse(door.read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {each.name for node in imports for each in node.names if each.name == each.asname}


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
    assert not may_enter(f"{CORE}.cli.run", f"{CORE}.gate.plan")
    assert not may_enter(f"{CORE}.execute.pool", f"{CORE}.execute.hosts.wire"), "a room inside"
    assert may_enter(f"{CORE}.gate.judge", f"{CORE}.gate.plan")
    assert may_enter(f"{CORE}.cli.run", f"{CORE}.gate")
    assert may_enter(f"{CORE}.cli.run", f"{CORE}.gate.health"), "a second door"
    assert may_enter(f"{CORE}.measure", f"{CORE}.measure.collectors.base"), "tests of a room inside"


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
