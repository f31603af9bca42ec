"""`orbax-bench list`."""

import json

import pytest

from orbax_bench_core.sweep import BUILTINS, describe_options, load_class

_said = {}


@pytest.fixture
def listed(orbax_bench):
    """What the command says, always the same."""
    if not _said:
        _said["list"] = orbax_bench("list", *BUILTINS)
    return _said["list"]


def test_without_a_name_each_is_a_line(orbax_bench, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = orbax_bench("list")
    lines = done.out.splitlines()
    assert {line.split(" ")[0] for line in lines} >= set(BUILTINS)
    assert len(lines) < 4 * len(BUILTINS)
    assert max(map(len, lines)) <= 80
    assert "`orbax-bench list NAME` shows its options" in lines[-1]


def test_prose_ends_where_the_terminal_does(orbax_bench):
    said = orbax_bench("list", "save_restore").out
    assert "What was loaded is verified outside the clock. A save" in said


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


def test_one_is_listed_alone(orbax_bench):
    outcome = orbax_bench("list", "deleter")
    assert [line for line in outcome.out.splitlines() if line.startswith("deleter  ")]
    assert "save_restore" not in outcome.out


def test_a_name_that_is_none_is_refused_with_the_nearest(orbax_bench):
    outcome = orbax_bench("list", "save_restor")
    assert outcome.code == 2
    assert "there is no built-in benchmark 'save_restor'; did you mean 'save_restore'?" in (
        outcome.err
    )


def test_json_has_every_option(orbax_bench):
    (found,) = json.loads(orbax_bench("list", "save_restore", "--json").out)
    assert (found["name"], found["class"]) == ("save_restore", BUILTINS["save_restore"])
    assert {option["name"] for option in found["options"]} == {
        option.name for option in describe_options(load_class(BUILTINS["save_restore"]))
    }
