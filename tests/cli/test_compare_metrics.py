"""`orbax-bench compare`: every metric, not the ratio of times alone."""

import json

import pytest

from tests.support.paired_runs import (  # noqa: F401 - fixtures
    BYTES,
    HITS,
    RATE,
    arms,
    make_paired_run,
)


@pytest.mark.parametrize("shown", ["all", "changed", "none"])
def test_a_terminal_of_80_columns_has_those_asked_for(orbax_bench, arms, monkeypatch, shown):
    monkeypatch.setenv("COLUMNS", "80")
    said = orbax_bench("compare", arms.root, "--metrics", shown).out
    flat = "".join(said.split())
    assert (BYTES in flat, HITS[:30] in flat) == (shown != "none", shown == "all")
    table = said.partition("metric  ")[2].partition("\n\n")[0]
    assert all(len(line) <= 80 for line in table.splitlines())


def test_by_default_it_shows_what_differs_most(orbax_bench, arms):
    said = orbax_bench("compare", arms.root).out
    assert "+100.0 %" in said
    assert "1 do not differ; `compare DIR --metrics all` has all" in said


def test_json_has_them(orbax_bench, arms):
    report = json.loads(orbax_bench("compare", arms.root, "--json").out)
    assert {each["metric"] for each in report["points"][0]["metrics"]} >= {BYTES, RATE, HITS}
