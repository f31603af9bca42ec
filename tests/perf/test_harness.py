"""The harness: its exit codes, its table and its file."""

import dataclasses

import pytest

from perf import harness
from perf.figure import EXIT_MISSED
from perf.pairing import Figure

MET = Figure(name="a", unit="s", ours=(1.0,), upstream=(4.0,), target=0.5, limits="ratio")
MISSED = dataclasses.replace(MET, name="b", target=0.1)
UNKNOWN = dataclasses.replace(MISSED, upstream=None)


def giving(figure):
    def probe(_setting):
        return [figure]

    return probe


@pytest.mark.parametrize(
    ("figure", "code", "cells"),
    [
        (MET, 0, ["a (s)", "1 [1–1]", "4 [4–4]", "0.25 [0.25–0.25]", "≤ 0.5 x", "yes"]),
        (MISSED, EXIT_MISSED, ["b (s)", "NO", "≤ 0.1 x"]),
        (UNKNOWN, 0, ["b (s)", "1 [1–1]", "–"]),
        (dataclasses.replace(MET, limits="value"), EXIT_MISSED, ["≤ 0.5 s", "NO"]),
    ],
)
def test_a_missed_target_is_in_the_table_and_the_exit_code(figure, code, cells, capsys):
    assert harness.main([], {"x": giving(figure)}) == code
    shown = capsys.readouterr().out
    assert [cell for cell in cells if cell not in shown] == []
