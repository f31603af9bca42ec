"""The registry of metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from orbax_bench_core.measure import known_metrics
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
