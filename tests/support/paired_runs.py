"""Run directories of paired comparisons and of separate runs, made by hand."""

import datetime
import itertools
import math
import random

import pytest

from orbax_bench_core.config import BLOCK_SIZE
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import ErrorInfo, Run
from orbax_bench_core.sweep import arrangement

MONDAY = datetime.datetime(2026, 3, 2, 6, tzinfo=datetime.UTC)
BYTES = "5_inventory/operation_bytes"
RATE = "4_throughput/operation_gbps"
HITS = "6_tensorstore/tensorstore_cache_hit_count_value_diff"
STORAGE = {"storage": {"type": "ext4", "mount": "/"}}


@pytest.fixture
def make_separate_run(make_point, make_record, make_run):
    """Writes the run of one point without arms, `day` days after a Monday.

    Its saves take `seconds`, with noise of which the seed is the day.
    """

    def make(day, seconds=1.0, *, point=None, repeats=6, sigma=0.02, provenance=None, folder=None):
        draw = random.Random(day)
        records = [
            make_record(
                point,
                repeat,
                times={"save": seconds * math.exp(draw.gauss(0, sigma))},
                run_id=f"run{day:03}",
                provenance=provenance_of(make_record, provenance),
            )
            for repeat in range(repeats)
        ]
        return dated(make_run, records, day, folder, num_repeats=repeats)

    return make


@pytest.fixture
def make_paired_run(make_point, make_record, make_run):
    """Writes the run of one pair, `day` days after a Monday.

    The baseline's saves take `seconds`, the candidate's `ratio` times as long, with noise of which
    the seed is the day. Without a `pair` both arms are the same. With `stalls`
    or `failures` the first save of the candidate in every fifth block stalls or fails. With
    `cpu_sigma` saves also have CPU times, of that noise.
    """

    def make(
        day,
        ratio=1.0,
        *,
        pair=None,
        blocks=5,
        sigma=0.02,
        seconds=1.0,
        provenance=None,
        folder=None,
        size=2**26,
        stalls=False,
        failures=False,
        cpu_sigma=None,
        **fields,
    ):
        point = pair or make_point(candidate=make_point())
        draw = random.Random(day)
        start = MONDAY + datetime.timedelta(days=day)
        records = []
        for block in range(blocks):
            arms = arrangement(point.id, day, block)
            for slot, arm in enumerate(arms):
                repeat = block * BLOCK_SIZE + slot
                bad = block % 5 == 0 and slot == arms.index("candidate")
                took = seconds * (ratio if arm == "candidate" else 1)
                took *= 20 if bad and stalls else 1
                failed = bad and failures
                if cpu_sigma is not None:
                    fields["cpu"] = {"save": took * math.exp(draw.gauss(0, cpu_sigma))}
                records.append(
                    make_record(
                        point,
                        repeat,
                        status="failed" if failed else "passed",
                        error=ErrorInfo(type="OSError", message="gone") if failed else None,
                        times={"save": took * math.exp(draw.gauss(0, sigma))},
                        run_id=f"run{day:03}",
                        arm=arm,
                        block=block,
                        started_at=start + datetime.timedelta(seconds=3 * repeat),
                        state={"num_bytes": size, "digest": {}},
                        provenance=provenance_of(make_record, provenance),
                        **fields,
                    )
                )
        return dated(make_run, records, day, folder)

    return make


@pytest.fixture
def make_nightly(make_paired_run):
    """Writes one paired run per ratio, a day apart; `versions` gives the candidate's Orbax."""

    def make(ratios, versions=(), **fields):
        named = itertools.zip_longest(ratios, versions)
        return [
            make_paired_run(
                day,
                ratio,
                provenance=None if version is None else orbax(version),
                **fields,
            )
            for day, (ratio, version) in enumerate(named)
        ]

    return make


def orbax(version):
    """What a record says that ran with a version of Orbax."""
    return {"versions": {"jax": "0.10.2", "orbax-checkpoint": version}}


def provenance_of(make_record, given):
    return {**make_record().provenance, **STORAGE, **(given or {})}


def dated(make_run, records, day, folder, **fields):
    """Writes the records as the run of a day."""
    run = make_run(records, folder=folder or f"day{day:03}", **fields)
    start = MONDAY + datetime.timedelta(days=day)
    run.write_info(
        run.read_info().model_copy(
            update={"run_id": f"run{day:03}", "created_at": start, "status": "complete"}
        )
    )
    return run


def sample(metric, value, unit="", *, operation="save", occurrence=0):
    return Sample(operation, occurrence, metric, value, unit)


@pytest.fixture
def arms(make_paired_run):
    """A paired run whose candidate writes twice the bytes at half the rate."""
    made = make_paired_run(0)
    for record in list(Run(made).records()):
        twice = 2.0 if record.arm == "candidate" else 1.0
        more = (
            sample(BYTES, 2.0**20 * twice, "bytes"),
            sample(RATE, 1 / twice, "GiB/s"),
            sample(HITS, 7.0, "count"),
        )
        file = (
            made.root / f"records/{record.point_id}/repeat_{record.repeat}/host_{record.host}.json"
        )
        again = record.model_copy(update={"samples": (*record.samples, *more)})
        file.write_text(again.model_dump_json())
    return made
