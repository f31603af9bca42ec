"""`python -m perf.gate` from its cells to its tables."""

import json
from pathlib import Path

import pytest

from perf.gate import __main__ as command
from perf.gate.figures import Figure, Sources, cells, figures, rival_table
from perf.gate.replay import read_series

SOURCES = Sources.of(read_series())
FEW = 8


def test_no_cell_is_tried_twice() -> None:
    keys = [cell.key for cell in cells(SOURCES, FEW)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("met", "shown"), [(True, "yes"), (False, "NO"), (None, "–")], ids=["met", "missed", "shown"]
)
def test_the_table_says_whether_a_target_is_met(
    met: bool | None, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    figure = Figure(group="power", name="iid", value=0.9731, error=0.004, target="≥ 95%", met=met)
    Console(width=140).print(command.figure_table([figure]))
    out = capsys.readouterr().out
    assert [cell for cell in ("97.31 %", "± 0.40 %", "≥ 95%", shown) if cell not in out] == []


@pytest.mark.slow
def test_every_figure_comes_of_the_cells() -> None:
    tallies = command.try_out(cells(SOURCES, FEW), jobs=1)
    found = figures(tallies, SOURCES)
    groups = {figure.group for figure in found}
    assert len(groups) == 11
    assert all(figure.met is not None for figure in found if figure.target)
    assert list(rival_table(tallies, SOURCES))[-1] == "paired gate, defaults"


@pytest.mark.slow
def test_the_command_writes_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", FEW)
    file = tmp_path / "figures.json"
    code = command.main(["--quick", "--jobs", "2", "--json", str(file)])
    found = json.loads(file.read_text())
    missed = [figure for figure in found["figures"] if figure["met"] is False]
    assert code == (command.EXIT_MISSED if missed else 0)
    assert "targets met" in capsys.readouterr().out


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_the_number_of_processes_must_be_one(jobs: str) -> None:
    with pytest.raises(SystemExit):
        command.main([f"--jobs={jobs}"])
