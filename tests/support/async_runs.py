"""Records of saves in the background and of saves that block, made by hand."""

import pytest

from orbax_bench_core.config import CheckpointConfig

ELEMENTS = {"1M": 10**6, "10M": 10**7, "100M": 10**8, "1B": 10**9}


@pytest.fixture
def make_saves(make_point, make_record):
    """Makes the records of one point: one repeat per pair of blocked and total seconds."""

    def make(elements, background, times, *, options=None, checkpoint=None, label="", **fields):
        spec = {"params": {"dtype": "bfloat16", "shape": [elements]}}
        point = make_point(
            options={"use_ocdbt": True, **(options or {}), "async_enabled": background},
            checkpoint=checkpoint or CheckpointConfig(spec=spec, name=str(elements)),
            label=f"{elements},async={background}{label}",
            **fields,
        )
        return [
            make_record(
                point,
                repeat,
                times={"save_blocking": blocked, "save": total},
                state={"num_bytes": 2 * elements, "digest": {}},
            )
            for repeat, (blocked, total) in enumerate(times)
        ]

    return make


@pytest.fixture
def make_pair(make_saves):
    """Makes both points of one size on exact lines, with repeats that differ by a factor.

    A blocking save takes 0.1 s and its bytes at 100 MB/s, one in the background blocks for 0.05 s
    and its bytes at 1 GB/s.
    """

    def make(elements, factors=(0.98, 0.99, 0.999, 1.001, 1.01, 1.02), **fields):
        num_bytes = 2 * elements
        sync, blocked = 0.1 + num_bytes / 1e8, 0.05 + num_bytes / 1e9
        return [
            *make_saves(elements, False, [(sync * f, sync * f) for f in factors], **fields),
            *make_saves(elements, True, [(blocked * f, 1.1 * sync * f) for f in factors], **fields),
        ]

    return make


@pytest.fixture
def make_sizes(make_pair, make_run):
    """Writes a run of four sizes from 1M to 1B parameters."""

    def make(**fields):
        records = [record for count in ELEMENTS.values() for record in make_pair(count, **fields)]
        return make_run(records)

    return make
