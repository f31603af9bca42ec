"""Runs made by hand, of which every value is known."""

import datetime
import itertools

from tests.golden import support

PLAIN = """\
suite_name: golden
num_repeats: 2
checkpoint_configs:
- spec:
    params: {dtype: bfloat16, shape: [64, 64], sharding: [fsdp]}
    step: {dtype: int32, shape: []}
  name: small
mesh_config:
  mesh_axes: [fsdp]
  ici_parallelism: {fsdp: 2}
execution: {processes: [1, 2], cache: cold, durable: true}
benchmarks:
- generator: save_restore
  options: {use_ocdbt: [true, false]}
"""
SKIPPING = """\
suite_name: skipping
num_repeats: 1
checkpoint_configs:
- spec: {params: {dtype: float32, shape: [6, 4], sharding: [fsdp]}}
mesh_configs:
- {mesh_axes: [fsdp], ici_parallelism: {fsdp: 2}}
- {mesh_axes: [fsdp], ici_parallelism: {fsdp: 4}}
benchmarks:
- generator: save_restore
  options: {}
"""
PAIRED = """\
suite_name: golden
checkpoint_config: {spec: {params: {dtype: bfloat16, shape: [1024, 1024]}}}
environments:
- {name: old, requirements: ["orbax-checkpoint==0.11.20"]}
benchmarks:
- generator: save_restore
  options: {use_compression: [true, false]}
arms:
  baseline: {environment: old}
  candidate: {options: {use_ocdbt: false}}
gate:
  tolerance: 0.05
  looks: [4, 10]
  metrics: {load: {margin: 0.3}}
"""
SAME = """\
suite_name: golden
checkpoint_config: {spec: {params: {dtype: bfloat16, shape: [1024, 1024]}}}
benchmarks:
- generator: save_restore
  options: {}
arms: {}
"""
ONE = SAME.replace("arms: {}", "arms: {candidate: {options: {use_ocdbt: false}}}")
PROVENANCE = {
    "devices": {"platform": "cpu", "kind": "cpu", "count": 2, "topology": "unknown"},
    "versions": {"orbax-bench": "0.1.0", "orbax-checkpoint": "0.12.8", "jax": "0.10.2"},
    "python": "3.11.7",
    "git": {"commit": "c0ffee", "dirty": False},
    "code": {"generator": {"commit": "c0ffee"}, "suite": {"commit": "c0ffee", "dirty": False}},
    "image": "unknown",
    "host": {"name": "h", "kernel": "Linux", "cpu": "EPYC", "cpu_count": 2, "memory_bytes": 2**34},
    "storage": {"type": "ext4", "mount": "/"},
}
ERROR = {
    "type": "ValueError",
    "message": "no “space” left",
    "traceback": 'Traceback (most recent call last):\n  File "a b.py", line 1\nValueError: no\n',
}
STATE = {"num_bytes": 8196, "digest": {"params": "00ff", "step": "ff00"}, "verified": "saved"}
INVENTORY = {
    "total_bytes": 9000,
    "file_count": 3,
    "largest_bytes": 8192,
    "kinds": {
        "ocdbt_data": {"files": 1, "num_bytes": 8192},
        "ocdbt_manifest": {"files": 2, "num_bytes": 808},
    },
    "data": {"files": 1, "num_bytes": 8192},
    "metadata": {"files": 2, "num_bytes": 808},
    "small_data_files": 1,
    "largest_data_bytes": 8192,
    "smallest_data_bytes": 8192,
}
LIMITS = {
    "path": "/data/run",
    "requested_bytes": 2**31,
    "num_bytes": 2**30,
    "capped_by": "half of the disk",
    "num_threads": 2,
    "dtype": "bfloat16",
    "taken_at": support.NOON,
    "duration_s": 3.25,
    "surroundings": {
        "host_memory": "reused",
        "load_average": 0.5,
        "available_memory_bytes": 2**33,
        "free_disk_bytes": None,
        "page_bytes": 4096,
    },
    "provenance": {"python": "3.11.7"},
    "probes": (
        {"name": "write_fsync", "num_bytes": 2**30, "seconds": (0.5, 0.25, 0.75)},
        {"name": "read_cold", "num_bytes": 2**30, "reason": "not cold"},
        {"name": "read_warm", "num_bytes": 2**30, "seconds": (0.125,)},
    ),
}

TIME = "0_basics/time_s"
BYTES = "5_inventory/operation_bytes"


def sample(operation, metric, value, unit, occurrence=0):
    return {
        "operation": operation,
        "occurrence": occurrence,
        "metric": metric,
        "value": value,
        "unit": unit,
    }


def measured(save, load):
    """Samples of one repeat."""
    return (
        sample("save", TIME, save, "s"),
        sample("save", BYTES, 8196.0, "B"),
        sample("load", TIME, load, "s"),
        sample("load", TIME, 2 * load, "s", 1),
        sample("load", BYTES, 8196.0, "B"),
        sample("load", BYTES, 8196.0, "B", 1),
        sample("load", "7_memory/peak_rss_mb", 12.5, "MB"),
    )


def after(seconds):
    return support.NOON + datetime.timedelta(seconds=seconds)


def plain_run(folder):
    """Writes a run with a record of every kind outside pairs; returns the files by kind."""
    support.start_run(folder, PLAIN)
    first, both_hosts, second, _ = support.entries(PLAIN)
    common = {"provenance": PROVENANCE, "state": STATE, "inventory": INVENTORY}
    write = support.write_record
    odd = [("nan", float("nan")), ("up", float("inf")), ("down", float("-inf")), ("zero", -0.0)]
    return {
        "warm-up": write(
            folder, first, 0, warmup=True, samples=measured(0.5, 0.25), duration_s=2.0, **common
        ),
        "passed": write(
            folder,
            first,
            0,
            samples=measured(0.1 + 0.2, 0.25),
            notes={"save": ["allocated 1 MB at “a b.py”:1"]},
            **common,
        ),
        "passed_at_second_attempt": write(
            folder,
            first,
            1,
            samples=measured(0.375, 0.1875),
            attempts=(
                {
                    "error": ERROR,
                    "samples": measured(1.0, 2.0)[:1],
                    "started_at": after(-5.25),
                    "duration_s": 1.5,
                },
                {
                    "error": {"type": "Timeout", "message": "900 s"},
                    "started_at": after(-2),
                    "duration_s": 1.5,
                },
            ),
            **common,
        ),
        "not_finite": write(
            folder,
            second,
            0,
            samples=tuple(sample("save", f"custom/{name}", value, "") for name, value in odd),
            started_at=after(0.123456),
            provenance=PROVENANCE,
        ),
        "failed": write(
            folder,
            second,
            1,
            status="failed",
            error=ERROR,
            samples=measured(0.4375, 1.0)[:2],
            provenance=PROVENANCE,
        ),
        "host_0_of_2": write(
            folder, both_hosts, 0, num_hosts=2, samples=measured(0.25, 0.75), **common
        ),
        "host_1_of_2": write(
            folder, both_hosts, 0, host=1, num_hosts=2, samples=measured(0.5, 0.625), **common
        ),
        "peer_failed": write(
            folder,
            both_hosts,
            1,
            host=1,
            num_hosts=2,
            status="failed",
            error={"type": "PeerFailed", "message": "host 0 had failed"},
        ),
        "skipped": write(
            folder,
            both_hosts,
            1,
            num_hosts=2,
            status="skipped",
            error={"type": "MeshDoesNotFit", "message": "needs 4 devices, there are 2"},
            duration_s=0.0,
        ),
    }


def paired_run(folder, suite=PAIRED, *, blocks=5, ratio=1.5, run_id=support.RUN_ID, day=0):
    """Writes a run of pairs whose candidates take `ratio` times as long; returns its files."""
    start = support.NOON + datetime.timedelta(days=day)
    support.start_run(folder, suite, run_id=run_id, created_at=start)
    files = []
    for entry in support.entries(suite):
        noise = itertools.cycle([1.0, 1.015625, 0.984375, 1.0078125, 0.9921875, 1.03125, 0.96875])
        for block in range(blocks):
            for slot, arm in enumerate(support.arrangement(run_id, entry.id, block)):
                factor = next(noise) * (ratio if arm == "candidate" else 1)
                files.append(
                    support.write_record(
                        folder,
                        entry,
                        4 * block + slot,
                        arm=arm,
                        block=block,
                        run_id=run_id,
                        samples=measured(0.25 * factor, 0.125 * next(noise)),
                        started_at=start + datetime.timedelta(seconds=3 * (4 * block + slot)),
                        state=STATE,
                        provenance=PROVENANCE,
                    )
                )
    return files


STUDY = """\
suite_name: golden
num_repeats: 6
checkpoint_configs:
- {spec: {params: {dtype: bfloat16, shape: [1000000]}}, name: 1M}
- {spec: {params: {dtype: bfloat16, shape: [10000000]}}, name: 10M}
- {spec: {params: {dtype: bfloat16, shape: [100000000]}}, name: 100M}
benchmarks:
- generator: save_restore
  options: {async_enabled: [false, true]}
"""


def study_run(folder):
    """Writes a run of saves that block and saves in the background, near two lines."""
    support.start_run(folder, STUDY)
    away = {10**6: 1.0625, 10**7: 0.9375, 10**8: 1.03125}
    for entry in support.entries(STUDY):
        ((_, point),) = support.sides(entry).items()
        (elements,) = point.checkpoint.spec["params"].shape
        blocked = total = (0.125 + elements / 2**25) * away[elements]
        if point.options["async_enabled"]:
            blocked, total = 0.0625 + elements / 2**29 * away[elements], 1.25 * total
        for repeat, noise in enumerate((0.98, 0.99, 0.999, 1.001, 1.01, 1.02)):
            support.write_record(
                folder,
                entry,
                repeat,
                samples=(
                    sample("save_blocking", TIME, blocked * noise, "s"),
                    sample("save", TIME, total * noise, "s"),
                ),
                state={"num_bytes": 2 * elements, "digest": {}},
                provenance=PROVENANCE,
            )
