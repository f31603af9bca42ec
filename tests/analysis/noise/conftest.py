"""Records of known noise."""

import datetime
import math

import numpy as np
import pytest

from orbax_bench_core.config import BLOCK_SIZE, CheckpointConfig
from orbax_bench_core.sweep import Pair, arrangement
from tests.support.paired_runs import MONDAY, STORAGE

MIB = 2**20


def checkpoint(num_bytes):
    """A checkpoint of so many bytes."""
    return CheckpointConfig(spec={"w": {"dtype": "uint8", "shape": [num_bytes]}})


@pytest.fixture
def noisy_records(make_point, make_record):
    """Returns the records of one run whose saves have a known sigma, and start 3 s apart."""

    def make(sigma, *, run=0, n=400, pair=True, drift=0.0, ratio=1.0, size=64 * MIB, **provenance):
        random = np.random.default_rng(run)
        point = make_point(checkpoint=checkpoint(size))
        point = Pair(baseline=point, candidate=point) if pair else point
        found = []
        for repeat in range(n):
            block, slot = divmod(repeat, BLOCK_SIZE)
            arm = arrangement(point.id, run, block)[slot] if pair else None
            logs = sigma * random.standard_normal() + drift * repeat / n
            logs += math.log(ratio) * (arm == "candidate")
            found.append(
                make_record(
                    point,
                    repeat,
                    times={"save": math.exp(logs)},
                    run_id=f"run{run}",
                    arm=arm,
                    block=block if pair else None,
                    started_at=MONDAY + datetime.timedelta(seconds=3 * repeat),
                    state={"num_bytes": size, "digest": {}},
                    provenance={**make_record().provenance, **STORAGE, **provenance},
                )
            )
        return found

    return make
