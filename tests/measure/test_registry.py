"""The registry of metrics, the reference made from it, and the collectors by key."""

import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.measure import collectors, documentation, known_metrics
from orbax_bench_core.measure.known_metrics import Metric


@pytest.mark.parametrize("family", known_metrics.FAMILIES, ids=lambda family: family.pattern)
def test_the_example_of_a_family_resolves_to_its_collector(family):
    assert known_metrics.lookup(family.example).collector == family.collector


def test_a_name_registers_once():
    with pytest.raises(ValueError, match="registered already, by collector 'time'"):
        known_metrics.register(Metric("0_basics/time_s", "ms", "lower", "again", "mine"))


@pytest.mark.parametrize("name", ["1_unknown/x", "0_basics", "0_basics/"])
def test_a_name_needs_a_known_namespace(name):
    with pytest.raises(ValueError, match="with a namespace of: 0_basics, "):
        known_metrics.register(Metric(name, "s", "lower", "text", "mine"))


def test_lookup_of_an_unknown_name_names_the_nearest():
    with pytest.raises(KeyError, match="0_basics/time_s"):
        known_metrics.lookup("0_basics/times_s")


def test_the_registry_can_be_read_without_heavy_imports():
    code = (
        "import sys, orbax_bench_core.measure.known_metrics, orbax_bench_core.measure.observers;"
        "import orbax_bench_core.measure.profiling;"
        "print(*{'jax', 'tensorstore', 'orbax', 'psutil', 'numpy'} & sys.modules.keys())"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == ""


DOCS = Path(documentation.__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", documentation.pages())
def test_the_file_in_the_checkout_is_what_the_registry_says(name):
    assert (DOCS / name).read_text() == documentation.pages()[name], (
        "stale: run `python -m orbax_bench_core.measure.documentation`"
    )


def test_running_it_writes_both_files_into_a_checkout(tmp_path, monkeypatch, capsys):
    place = tmp_path / "core" / "measure" / "reference.py"
    monkeypatch.setattr(documentation, "__file__", str(place))
    assert documentation.main() == 2
    assert "run this from a checkout" in capsys.readouterr().err
    (tmp_path / "docs").mkdir()
    assert documentation.main() == 0
    written = {str(path.relative_to(tmp_path / "docs")) for path in tmp_path.rglob("*.*")}
    assert written == {"metrics.md", "schema/metrics.json"}


def test_some_collectors_are_opt_in():
    opt_in = {"tracemalloc", "store_answers", "process_state"}
    assert set(collectors.KEYS) - set(collectors.DEFAULT_KEYS) == opt_in


def test_every_block_can_be_given_further_collectors():
    with collectors.also_collecting("rss"):
        running = collectors.start(("cpu",))
        collectors.stop(running)
    assert [key for key, _ in running] == ["cpu", "rss"]
    assert collectors.start(("time",)) == []
