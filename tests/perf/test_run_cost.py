"""Saves of a run beside those of a bare loop."""

import pytest

from perf import run_cost
from perf.figure import EXIT_MISSED
from perf.pairing import Pairs
from perf.probe import Setting


class Once(Setting):
    """A setting without the pair that is thrown away."""

    def pairs(self, name, ours, theirs=None):
        return Pairs(ours=(ours(),), upstream=(theirs(),) if theirs else None)


@pytest.mark.slow
def test_both_sides_are_measured_and_what_is_kept_is_only_shown(capsys, monkeypatch):
    for name, value in {"SIZES": (1,), "_SAVES": 4, "_TURNS": 2, "Setting": Once}.items():
        monkeypatch.setattr(run_cost, name, value)
    code = run_cost.main(["--rounds", "1", "--kept", "--unsynced"])
    said = capsys.readouterr().out
    missed = "NO" in said
    assert code == (EXIT_MISSED if missed else 0)
    assert "1 MiB save: run over a bare loop" in said
    assert "1 MiB save: ab over a bare loop, CPU" in said
    assert "1 MiB save: run --keep-data over" in said
    assert said.count("≤ 1.05 x") == 5  # the saves in turn in one worker, too
