"""Sweeps of which the truth is known."""

import datetime
import itertools

import numpy as np
import pytest

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import State

CLASS = "save_restore"
EMPTY = CheckpointConfig()
NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
PEAK = "7_memory/host_peak_rss_mb"


@pytest.fixture
def sweep(make_run, make_point, make_record):
    """Writes a run of all combinations of options, and returns its directory.

    `seconds` gives the time of a save from the options; `of` changes the record of one repeat,
    given options and round, or drops it by returning None. An option whose value is `...` is not
    given. New workers start every `per_process` rounds, in each of which every point is off by
    `apart` on the log scale.
    """

    def make(
        options,
        seconds,
        *,
        seed=0,
        rounds=6,
        cv=0.02,
        of=None,
        only=None,
        load=None,
        checkpoints=(EMPTY,),
        per_process=1,
        apart=0.0,
        **fields,
    ):
        rng = np.random.default_rng(seed)
        points, records = [], []
        for checkpoint, *values in itertools.product(checkpoints, *options.values()):
            pairs = zip(options, values, strict=True)
            given = {name: value for name, value in pairs if value is not ...}
            if only is not None and not only(given):
                continue
            label = ",".join(f"{name}={value}" for name, value in given.items())
            whole = {"async_enabled": False, **given}
            given_fields = {"benchmark": CLASS, "given": tuple(given), "label": label, **fields}
            point = make_point(options=whole, checkpoint=checkpoint, **given_fields)
            points.append(point)
        off = {point.id: 1.0 for point in points}
        for number in range(rounds):
            drift = float(rng.lognormal(0, 0.3))
            if apart and number % per_process == 0:
                off = {point.id: float(rng.lognormal(0, apart)) for point in points}
            for point in points:
                noise = float(rng.lognormal(0, cv)) * drift * off[point.id]
                times = {
                    "save": seconds(point.options) * noise,
                    "load": (load or (lambda _: 0.1))(point.options) * noise,
                }
                changed = {"state": State(num_bytes=8, digest={}, verified="saved")}
                if of is not None:
                    more = of(point.options, number)
                    if more is None:
                        continue
                    changed.update(more)
                times = changed.pop("times", times)
                peak = changed.pop("peak_mb", None)
                changed.setdefault("worker", f"host:{number // per_process}:0")
                changed["started_at"] = NOON + datetime.timedelta(minutes=number)
                record = make_record(point, number, times=times, **changed)
                if peak is not None:
                    samples = (*record.samples, Sample("save", 0, PEAK, peak, "MiB"))
                    record = record.model_copy(update={"samples": samples})
                records.append(record)
        run = make_run(records, points=points, num_repeats=rounds)
        return str(run.root)

    return make


@pytest.fixture
def stored():
    """Returns an inventory of so many bytes and files."""

    def make(num_bytes, files=4):
        return Inventory(total_bytes=num_bytes, file_count=files, largest_bytes=num_bytes)

    return make
