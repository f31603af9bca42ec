"""`multihost_dispatchers` and `snapshotter`: what they need, and give back."""

import sys

import jax
import pytest
from orbax.checkpoint.experimental.v1._src.training.pathways import snapshotter

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.array_handler import ArrayHandler
from orbax_bench_core.benchmarks.multihost_dispatchers import (
    MultihostDispatchers,
    MultihostDispatchersOptions,
)
from orbax_bench_core.benchmarks.snapshotter import Snapshotter


@pytest.mark.parametrize(
    ("module", "benchmark", "given"),
    [
        ("cloudpickle", MultihostDispatchers, {}),
        ("cloudpickle", ArrayHandler, {"use_colocated_python": True}),
        ("pathwaysutils", Snapshotter, {"spec": None}),
    ],
)
def test_without_what_pathways_needs_its_extra_is_named(run, monkeypatch, module, benchmark, given):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(UnmetNeed, match=r"pip install 'orbax-bench\[pathways\]'"):
        run(benchmark, **given)


def test_measures_three_dispatches(run):
    outcome = run(MultihostDispatchers)
    assert outcome.blocks == [
        "dispatch_without_result_specs",
        "dispatch_with_dummy_result_array",
        "dispatch_with_result_specs",
    ]
    assert outcome.verified


def test_device_count(run, monkeypatch):
    from orbax.checkpoint._src.multihost import dispatchers

    seen = []
    make = dispatchers.get_dummy_input_array
    monkeypatch.setattr(
        dispatchers,
        "get_dummy_input_array",
        lambda devices: (seen.append(len(devices)), make(devices))[1],
    )
    run(MultihostDispatchers, device_count=2)
    run(MultihostDispatchers)
    assert seen == [2, 8]


def test_more_devices_than_there_are_is_said(run):
    with pytest.raises(UnmetNeed, match="device_count: 9 needs that many devices; 8 are here"):
        run(MultihostDispatchers, device_count=9)


def test_defect_30_what_always_failed_is_no_combination():
    assert not MultihostDispatchersOptions(use_colocated=False).is_valid()
    assert MultihostDispatchersOptions().is_valid()


CYCLE = ["save", "load_scale_down", "save_scale_down_state", "load_scale_up"]


def test_slices_that_are_not_there_are_said(run, make_mesh):
    with pytest.raises(UnmetNeed, match=r"needs 2 slices .* there is 1 here"):
        run(Snapshotter, spec=None, mesh=make_mesh(replica=1, model=8))


def test_one_process_must_control_all(run, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UnmetNeed, match="needs a single process"):
        run(Snapshotter, spec=None, verify=False)


@pytest.mark.slow
def test_a_wrong_snapshot_is_found(run, monkeypatch):
    load = snapshotter.Snapshotter.load

    def load_wrong(self, target):
        return jax.tree.map(lambda leaf: leaf.at[3, 5].add(1), load(self, target))

    monkeypatch.setattr(snapshotter.Snapshotter, "load", load_wrong)
    with pytest.raises(VerificationError, match="weights: different"):
        run(Snapshotter, spec=None)


@pytest.mark.slow
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
