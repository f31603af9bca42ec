from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from perf import harness
from perf.pairing import Figure
from perf.probe import Probe, Setting
from perf.process import ProbeFailed

MET = Figure(name="a", unit="s", ours=(1.0,), upstream=(4.0,), target=0.5, limits="ratio")
MISSED = dataclasses.replace(MET, name="b", target=0.1)
UNKNOWN = dataclasses.replace(MISSED, upstream=None)


def giving(figure: Figure, calls: list[Setting] | None = None) -> Probe:
    def probe(setting: Setting) -> list[Figure]:
        if calls is not None:
            calls.append(setting)
        return [figure]

    return probe


def broken(_setting: Setting) -> list[Figure]:
    raise ProbeFailed("it does not start")


@pytest.mark.parametrize(
    ("figure", "code"), [(MET, 0), (MISSED, harness.EXIT_MISSED), (UNKNOWN, 0)]
)
def test_the_exit_code_says_whether_a_target_was_missed(figure: Figure, code: int) -> None:
    assert harness.main([], {"x": giving(figure)}) == code


def test_a_broken_probe_has_an_exit_code_of_its_own() -> None:
    assert harness.main([], {"x": broken, "y": giving(MISSED)}) == harness.EXIT_BROKEN


def test_a_broken_probe_does_not_stop_the_others() -> None:
    calls: list[Setting] = []
    harness.main([], {"x": broken, "y": giving(MET, calls)})
    assert len(calls) == 1


def test_a_broken_probe_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    harness.main([], {"x": broken})
    assert "error: x could not be measured: it does not start" in capsys.readouterr().err


def test_three_rounds_without_upstream_are_the_default() -> None:
    calls: list[Setting] = []
    harness.main([], {"x": giving(MET, calls)})
    assert (calls[0].rounds, calls[0].upstream) == (3, None)


def test_the_number_of_rounds_can_be_given() -> None:
    calls: list[Setting] = []
    harness.main(["--rounds", "5"], {"x": giving(MET, calls)})
    assert calls[0].rounds == 5


@pytest.mark.parametrize("rounds", ["0", "-1", "2.5", "many"])
def test_rounds_must_be_a_positive_whole_number(
    rounds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        harness.main([f"--rounds={rounds}"], {})
    assert f"'{rounds}' is not a whole number of at least 1" in capsys.readouterr().err


def test_only_the_named_probes_run() -> None:
    calls: list[Setting] = []
    probes = {"x": giving(MET, calls), "y": giving(MISSED), "z": giving(MET, calls)}
    assert (harness.main(["--only", "x", "z"], probes), len(calls)) == (0, 2)


def test_an_unknown_probe_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        harness.main(["--only", "nope"], {"x": giving(MET)})
    assert "invalid choice: 'nope'" in capsys.readouterr().err


def test_an_interpreter_without_the_framework_leaves_our_figures_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Setting] = []
    harness.main(["--upstream-python", str(tmp_path / "python")], {"x": giving(MET, calls)})
    assert calls[0].upstream is None
    assert "our own figures alone: cannot start" in capsys.readouterr().err


def test_children_may_write_byte_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    harness.main([], {})
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_the_json_file_has_every_raw_pair(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    harness.main(["--json", str(file)], {"x": giving(MET), "y": broken})
    found = json.loads(file.read_text())
    assert found["figures"] == [
        {
            "name": "a",
            "unit": "s",
            "ours": [1.0],
            "upstream": [4.0],
            "ratios": [0.25],
            "target": 0.5,
            "limits": "ratio",
            "met": True,
        }
    ]
    assert found["broken"] == {"y": "it does not start"}


@pytest.mark.parametrize(
    ("figure", "cells"),
    [
        (MET, ["a (s)", "1 [1–1]", "4 [4–4]", "0.25 [0.25–0.25]", "≤ 0.5 x", "yes"]),
        (MISSED, ["b (s)", "NO", "≤ 0.1 x"]),
        (UNKNOWN, ["b (s)", "1 [1–1]", "–"]),
        (dataclasses.replace(MET, limits="value"), ["≤ 0.5 s", "NO"]),
    ],
)
def test_the_table_shows_median_and_ends(
    figure: Figure, cells: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    harness.main([], {"x": giving(figure)})
    shown = capsys.readouterr().out
    assert [cell for cell in cells if cell not in shown] == []
