"""`multihost_dispatchers`: needs cloudpickle, and then gives back what it was given."""

import sys

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.multihost_dispatchers import (
    MultihostDispatchers,
    MultihostDispatchersOptions,
)


def test_without_cloudpickle_its_extra_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not installed
    with pytest.raises(UnmetNeed, match=r"pip install 'orbax-bench\[pathways\]'"):
        run(MultihostDispatchers)


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
