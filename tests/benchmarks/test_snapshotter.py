"""`snapshotter`: onto fewer slices and onto more."""

import importlib.util
import sys

import jax
import pytest

from orbax_bench_core.benchmarks.needs import UnmetNeed
from orbax_bench_core.benchmarks.snapshotter import Snapshotter, SnapshotterOptions

CYCLE = ["save", "load_scale_down", "save_scale_down_state", "load_scale_up"]
needs_pathwaysutils = pytest.mark.skipif(
    not importlib.util.find_spec("pathwaysutils"), reason="needs pathwaysutils"
)


def test_without_pathwaysutils_its_extra_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pathwaysutils", None)  # as if it were not installed
    with pytest.raises(UnmetNeed, match=r"pip install 'orbax-bench\[pathways\]'"):
        run(Snapshotter, spec=None)


def test_slices_that_are_not_there_are_said(run, make_mesh):
    with pytest.raises(UnmetNeed, match=r"needs 2 slices .* there is 1 here"):
        run(Snapshotter, spec=None, mesh=make_mesh(replica=1, model=8))


def test_one_process_must_control_all(run, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UnmetNeed, match="needs a single process"):
        run(Snapshotter, spec=None, verify=False)


@needs_pathwaysutils
def test_num_savings(run):
    assert run(Snapshotter, spec=None, num_savings=2).blocks == CYCLE * 2


@needs_pathwaysutils
def test_numbers_of_slices(run, make_mesh):
    outcome = run(
        Snapshotter,
        spec=None,
        mesh=make_mesh(replica=4, model=2),
        num_scale_down_slices=2,
        num_scale_up_slices=4,
    )
    rows, columns = 16, 64
    for operation, slices in zip(CYCLE, (4, 4, 2, 2), strict=True):
        size = rows * slices * columns * 2 * 4
        assert outcome.value(operation, "5_inventory/operation_bytes") == size


@needs_pathwaysutils
def test_metric_tracemalloc_enabled(run):
    metric = "save_7_memory/tracemalloc_peak_diff_mb"
    outcome = run(Snapshotter, spec=None, metric_tracemalloc_enabled=True)
    assert metric in outcome.metrics.results


@pytest.mark.parametrize("name", ["num_scale_down_slices", "num_scale_up_slices", "num_savings"])
def test_numbers_that_leave_nothing_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be 1 or more"):
        SnapshotterOptions(**{name: 0})
