"""`orbax-bench list`."""

import pytest

from orbax_bench_core.sweep import BUILTINS, describe_options, load_class

_said = {}


@pytest.fixture
def listed(orbax_bench):
    """What the command says, always the same."""
    if not _said:
        _said["list"] = orbax_bench("list")
    return _said["list"]


@pytest.mark.parametrize("option", describe_options(load_class(BUILTINS["save_restore"])))
def test_every_option_of_save_restore_is_listed_with_its_meaning(listed, option):
    rows = [line.split("│") for line in listed.out.splitlines()]
    # It is the first; others after it may have options of the same name.
    cells = {
        row[1].strip(): [cell.strip() for cell in row[2:5]]
        for row in reversed(rows)
        if len(row) == 6
    }
    default = {True: "true", False: "false", None: "null"}[option.default]
    assert cells[option.name] == [option.type, default, option.meaning]
    assert option.meaning


@pytest.mark.parametrize("name", BUILTINS)
def test_every_built_in_is_listed_with_what_it_measures(listed, name):
    (line,) = [line for line in listed.out.splitlines() if line.startswith(f"{name}  ")]
    assert listed.code == 0
    assert "Measures" in line
