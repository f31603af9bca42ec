"""Every Python that is started imports nothing from the current directory."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("orbax_bench_core", "components", "pipelines", "airflow_pipelines")
THE_ONE = ROOT / "orbax_bench_core/python_command.py"
PROBE = "_PROBE.read_text()"
"""Runs in a Python of any age, of which some do not know the flag: it leaves the folder itself."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_command_lines_of_python_are_made_in_one_place(folder):
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in (ROOT / folder).rglob("*.py")
        if file != THE_ONE
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.List | ast.Tuple) and is_command(node)
    ]
    assert not found, f"use python_command: {found}"


def is_command(node):
    """Whether a list is a Python, not an isolated one, and what it runs."""
    first, *rest = [ast.unparse(one) for one in node.elts] or [""]
    flags = {one.strip("'\"") for one in rest if one.startswith(("'-", '"-'))}
    runs = "executable" in first and bool(flags & {"-m", "-c"})
    return runs and "-I" not in flags and PROBE not in rest
