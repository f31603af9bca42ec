"""The registry of metrics, the reference made from it, and the collectors by key."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orbax_bench_core.measure import collectors, documentation, known_metrics
from orbax_bench_core.measure.known_metrics import Metric


def test_namespaces_come_in_the_order_of_the_guide() -> None:
    assert list(known_metrics.NAMESPACES) == [
        "0_basics",
        "2_save_breakdown",
        "3_load_breakdown",
        "4_throughput",
        "5_inventory",
        "6_tensorstore",
        "6_io",
        "7_memory",
        "7_overhead",
        "8_jax",
        "9_other",
    ]


@pytest.mark.parametrize("family", known_metrics.FAMILIES, ids=lambda family: family.pattern)
def test_the_example_of_a_family_resolves_to_its_collector(family: known_metrics.Family) -> None:
    assert known_metrics.lookup(family.example).collector == family.collector


def test_a_name_registers_once() -> None:
    with pytest.raises(ValueError, match="registered already, by collector 'time'"):
        known_metrics.register(Metric("0_basics/time_s", "ms", "lower", "again", "mine"))


@pytest.mark.parametrize("name", ["1_unknown/x", "0_basics", "0_basics/"])
def test_a_name_needs_a_known_namespace(name: str) -> None:
    with pytest.raises(ValueError, match="with a namespace of: 0_basics, "):
        known_metrics.register(Metric(name, "s", "lower", "text", "mine"))


def test_lookup_of_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(KeyError, match="0_basics/time_s"):
        known_metrics.lookup("0_basics/times_s")


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("6_tensorstore/tensorstore_kvstore_file_bytes_read_value_diff", "bytes"),
        ("9_other/orbax_something_new_duration_secs", "s"),
        ("2_save_breakdown/blocking_s_max", "s"),
        ("2_save_breakdown/blocking_s_count", "count"),
    ],
)
def test_lookup_resolves_names_that_only_a_run_can_know(name: str, unit: str) -> None:
    assert known_metrics.lookup(name).unit == unit


def test_the_registry_can_be_read_without_heavy_imports() -> None:
    code = (
        "import sys, orbax_bench_core.measure.known_metrics, orbax_bench_core.measure.observers;"
        "import orbax_bench_core.measure.profiling;"
        "print(*{'jax', 'tensorstore', 'orbax', 'psutil', 'numpy'} & sys.modules.keys())"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == ""


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


def test_some_collectors_are_opt_in() -> None:
    opt_in = {"tracemalloc", "store_answers", "process_state"}
    assert set(collectors.KEYS) - set(collectors.DEFAULT_KEYS) == opt_in


def test_every_block_can_be_given_further_collectors() -> None:
    with collectors.also_collecting("rss"):
        running = collectors.start(("cpu",))
        collectors.stop(running)
    assert [key for key, _ in running] == ["cpu", "rss"]
    assert collectors.start(("time",)) == []
