"""Surroundings: what is compared, and that not knowing is no difference."""

import pytest

from orbax_bench_core.provenance.machine import other_surroundings


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"host": {"cpu": "Xeon", "cpu_count": 2}}, ["CPU: Xeon, was EPYC"]),
        ({"host": {"cpu": "EPYC", "cpu_count": 4}}, ["number of CPUs: 4, was 2"]),
        ({"devices": {"kind": "TPU v5e"}}, ["device: TPU v5e, was cpu"]),
        ({"storage": {"type": "gs"}}, ["storage: gs, was ext4"]),
        ({"host": {"name": "other", "cpu": "EPYC", "cpu_count": 2}}, []),
        ({"devices": "unknown"}, []),
        ({"host": {}}, []),
    ],
)
def test_what_differs_is_named(make_record, block, said):
    before = {**make_record().provenance, "storage": {"type": "ext4"}}
    assert other_surroundings({**before, **block}, before) == said
