"""`python -m perf.gate` from its cells to its tables."""

import json
from pathlib import Path

import pytest

from perf.figure import Figure, figure_table
from perf.gate import __main__ as command
from perf.gate.cells import Cell, Tally
from perf.gate.claims import OPERATIONS, Claim, Sense
from perf.gate.figures import cells, claims
from perf.gate.replay import read_series
from perf.gate.sources import Sources

SOURCES = Sources.of(read_series())
FEW = 8


@pytest.mark.slow
def test_no_cell_is_tried_twice() -> None:
    keys = [cell.key for cell in cells(claims(SOURCES, FEW), SOURCES, FEW)]
    assert len(keys) == len(set(keys))


@pytest.mark.slow
def test_quick_leaves_out_only_what_others_nearly_repeat() -> None:
    every = {(claim.group, claim.name, claim.cell.key) for claim in claims(SOURCES, FEW)}
    quick = {
        (claim.group, claim.name, claim.cell.key) for claim in claims(SOURCES, FEW, quick=True)
    }
    assert quick < every


@pytest.mark.parametrize(
    ("sense", "counted", "met"),
    [
        ("at most", 10, True),
        ("at most", 40, False),
        ("at least", 10, True),
        ("at least", 1, False),
        ("near", 12, True),
        ("near", 40, False),
        ("never", 1, False),
        ("never", 0, True),
        ("shown", 40, None),
    ],
)
def test_a_claim_is_met_within_its_monte_carlo_error(
    sense: Sense, counted: int, met: bool | None
) -> None:
    cell = Cell(kind="time", series=100)
    claim = Claim(group="a", cell=cell, seen="passes", sense=sense, limit=0.1)
    found = claim.figure({cell.key: Tally(100, {"passes": counted})})
    assert (found.met, found.value) == (met, counted / 100)


def test_operations_are_means() -> None:
    cell = Cell(kind="time", series=100)
    claim = Claim(group="a", cell=cell, seen=OPERATIONS, sense="at most", limit=12)
    found = claim.figure({cell.key: Tally(100, {}, 1000, 10_000)})
    assert (found.value, found.met, found.share) == (10, True, False)


@pytest.mark.parametrize(
    ("met", "shown"), [(True, "yes"), (False, "NO"), (None, "–")], ids=["met", "missed", "shown"]
)
def test_the_table_says_whether_a_target_is_met(
    met: bool | None, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    figure = Figure(group="power", name="iid", value=0.9731, error=0.004, target="≥ 95%", met=met)
    Console(width=140).print(figure_table([figure]))
    out = capsys.readouterr().out
    assert [cell for cell in ("97.31 %", "± 0.40 %", "≥ 95%", shown) if cell not in out] == []


def few() -> list[Cell]:
    return [Cell(kind="time", series=FEW), Cell(kind="time", series=FEW, ratio=1.5)]


def test_cells_that_are_done_are_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.jsonl"
    first = command.try_out(few()[:1], jobs=1, state=state)
    with state.open("a") as file:
        file.write('{"cell": "cut sh')
    tried = []
    monkeypatch.setattr(command, "run", lambda part: tried.append(part) or Tally(FEW))
    found = command.try_out(few(), jobs=1, state=state)
    assert [cell.ratio for cell, _ in tried] == [1.5]
    assert found[few()[0].key] == first[few()[0].key]


def test_cells_of_another_gate_are_tried_again(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    row = {"code": "old", "cell": few()[0].key, "tally": {"series": FEW, "counts": {"passes": 3}}}
    state.write_text(json.dumps(row) + "\n")
    assert command.try_out(few()[:1], jobs=1, state=state)[few()[0].key].series == FEW


@pytest.mark.nightly
@pytest.mark.slow
def test_the_command_writes_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", 4)
    file = tmp_path / "figures.json"
    code = command.main(["--quick", "--jobs", "2", "--json", str(file)])
    found = json.loads(file.read_text())
    missed = [figure for figure in found["figures"] if figure["met"] is False]
    assert code == (command.EXIT_MISSED if missed else 0)
    assert "targets met" in capsys.readouterr().out
    assert list(found["false_alarms"])[-1] == "paired gate, defaults"


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_the_number_of_processes_must_be_one(jobs: str) -> None:
    with pytest.raises(SystemExit):
        command.main([f"--jobs={jobs}"])
