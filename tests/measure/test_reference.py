"""The generated reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orbax_bench_core.measure import documentation, known_metrics

DOCS = Path(documentation.__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    return documentation.pages()["metrics.md"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(documentation.pages()["schema/metrics.json"])
    return found


@pytest.mark.parametrize("name", documentation.pages())
def test_the_file_in_the_checkout_is_what_the_registry_says(name: str) -> None:
    assert (DOCS / name).read_text() == documentation.pages()[name], (
        "stale: run `python -m orbax_bench_core.measure.documentation`"
    )


@pytest.mark.parametrize("metric", known_metrics.all_metrics(), ids=lambda metric: metric.name)
def test_every_metric_is_on_the_page(metric: known_metrics.Metric, page: str) -> None:
    section = page.partition(f"\n## {metric.namespace}\n")[2].partition("\n## ")[0]

    assert f"| `{metric.name.partition('/')[2]}` |" in section


def test_every_namespace_has_a_section(page: str) -> None:
    sections = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]

    assert [one for one in sections if one in known_metrics.NAMESPACES] == list(
        known_metrics.NAMESPACES
    )


def test_running_it_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(
        documentation, "__file__", str(tmp_path / "core" / "measure" / "reference.py")
    )

    assert documentation.main() == 0
    assert {str(path.relative_to(tmp_path / "docs")) for path in tmp_path.rglob("*.*")} == {
        "metrics.md",
        "schema/metrics.json",
    }


def test_outside_a_checkout_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        documentation, "__file__", str(tmp_path / "core" / "measure" / "reference.py")
    )

    assert documentation.main() == 2
    assert "run this from a checkout" in capsys.readouterr().err
