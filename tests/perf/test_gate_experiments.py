"""Comparisons are counted the same whatever they are divided into."""

import math
import pickle

import pytest

from orbax_bench_core.config import GateRule
from perf.gate.experiments import Cell, Kind, Tally, run

RULE = GateRule()


def cell(
    kind: Kind = "verdicts", source: str = "iid", ratio: float = 1.0, series: int = 20
) -> Cell:
    return Cell(kind=kind, source=source, ratio=ratio, series=series, rule=RULE)


def test_parts_add_up_to_the_cell() -> None:
    parts = cell(series=25).parts(10)
    assert [part.series for part, _ in parts] == [10, 10, 5]
    assert len({seed for _, seed in parts}) == 3


def test_cells_have_seeds_of_their_own() -> None:
    assert cell().parts(20)[0][1] != cell(ratio=1.2).parts(20)[0][1]


def test_the_same_part_gives_the_same_tally() -> None:
    (part,) = cell().parts(20)
    assert run(part) == run(pickle.loads(pickle.dumps(part)))


@pytest.mark.parametrize(("ratio", "word"), [(1.0, "PASS"), (1.5, "REGRESSION")])
def test_verdicts_are_counted(ratio: float, word: str) -> None:
    assert run((cell(ratio=ratio), 1)).counts == {word: 20}


@pytest.mark.parametrize("kind", ["coverage", "stopped coverage"])
def test_coverage_is_counted(kind: Kind) -> None:
    found = run((cell(kind, ratio=1.1), 1))
    assert sum(found.counts.values()) == 20
    assert found.rate("covered") >= 0.8


def test_tallies_add_up() -> None:
    total = Tally(2, {"a": 1}, (10, 20)) + Tally(2, {"a": 1, "b": 2}, (10,))
    assert total == Tally(4, {"a": 2, "b": 2}, (10, 20, 10))
    assert total.rate("a") == 0.5
    assert total.mean_operations == pytest.approx(40 / 3)


def test_the_error_of_a_share_is_binomial_and_never_none() -> None:
    assert Tally(100, {"a": 20}).error("a") == pytest.approx(math.sqrt(0.2 * 0.8 / 100))
    assert Tally(100, {}).error("a") > 0
    assert Tally(100, {"a": 100}).error("a") > 0
