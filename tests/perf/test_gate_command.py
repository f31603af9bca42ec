"""`python -m perf.gate` from its cells to its tables."""

import json

import pytest

from perf.figure import EXIT_MISSED
from perf.gate import __main__ as command
from perf.gate.cells import Cell, Tally
from perf.gate.claims import Claim
from perf.gate.figures import cells, claims
from perf.gate.replay import read_series
from perf.gate.sources import Sources

SOURCES = Sources.of(read_series())
FEW = 8


@pytest.mark.slow
def test_no_cell_is_tried_twice():
    keys = [cell.key for cell in cells(claims(SOURCES, FEW), SOURCES, FEW)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("sense", "counted", "met"),
    [
        ("at most", 10, True),
        ("at most", 40, False),
        ("at least", 10, True),
        ("at least", 0, False),
        ("near", 12, True),
        ("near", 40, False),
        ("never", 1, False),
        ("never", 0, True),
        ("shown", 40, None),
    ],
)
def test_a_claim_is_met_within_its_monte_carlo_error(sense, counted, met):
    cell = Cell(kind="time", series=100)
    claim = Claim(group="a", cell=cell, seen="passes", sense=sense, limit=0.1)
    found = claim.figure({cell.key: Tally(100, {"passes": counted})})
    assert (found.met, found.value) == (met, counted / 100)


def few():
    return [Cell(kind="time", series=FEW), Cell(kind="time", series=FEW, ratio=1.5)]


def test_cells_that_are_done_are_not_tried_again(tmp_path, monkeypatch):
    state = tmp_path / "state.jsonl"
    first = command.try_out(few()[:1], jobs=1, state=state)
    with state.open("a") as file:
        file.write('{"cell": "cut sh')
    tried = []
    monkeypatch.setattr(command, "run", lambda part: tried.append(part) or Tally(FEW))
    found = command.try_out(few(), jobs=1, state=state)
    assert [cell.ratio for cell, _ in tried] == [1.5]
    assert found[few()[0].key] == first[few()[0].key]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_command_writes_every_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "QUICK", 4)
    file = tmp_path / "figures.json"
    code = command.main(["--quick", "--jobs", "2", "--json", str(file)])
    found = json.loads(file.read_text())
    missed = [figure for figure in found["figures"] if figure["met"] is False]
    assert code == (EXIT_MISSED if missed else 0)
    assert "targets met" in capsys.readouterr().out
    assert list(found["false_alarms"])[-1] == "paired gate, defaults"
