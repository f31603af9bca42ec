"""`orbax-bench list`."""

import pytest

from orbax_bench_core.sweep import BUILTINS, describe_options, load_class


@pytest.mark.parametrize("option", describe_options(load_class(BUILTINS["save_restore"])))
def test_every_option_of_save_restore_is_listed_with_its_meaning(orbax_bench, option):
    rows = [line.split("│") for line in orbax_bench("list").out.splitlines()]
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
def test_every_built_in_is_listed_with_what_it_measures(orbax_bench, name):
    outcome = orbax_bench("list")
    (line,) = [line for line in outcome.out.splitlines() if line.startswith(f"{name}  ")]
    assert outcome.code == 0
    assert "Measures" in line
