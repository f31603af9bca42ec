"""Large runs made by hand: the records of sweeps and comparisons that nobody has to measure."""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orbax_bench_core.records import Record, RunInfo
    from orbax_bench_core.sweep import Pair, SweepPoint

OPERATIONS: Final = ("save", "load")
NOISE: Final = 0.03
"""Standard deviation of the log of a time."""

_SUITE: Final = """
suite_name: large
num_repeats: {repeats}
benchmarks:
- {{generator: save_restore, options: {{}}}}
"""
_BEGAN: Final = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
_PROVENANCE: Final = {
    "versions": {"jax": "0.10.2", "orbax-checkpoint": "0.12.8"},
    "python": "3.11.7",
    "git": {"commit": "c0ffee", "dirty": False},
    "host": {
        "name": "h",
        "kernel": "Linux",
        "cpu": "EPYC",
        "cpu_count": 2,
        "memory_bytes": 2**34,
    },
    "devices": {"count": 8, "kind": "cpu", "platform": "cpu"},
}
_OWN: Final = re.compile(r'(?<="repeat": )0|(?<="value": )-1\.0')
"""Text that differs between the records of a series: the number of the repeat, and the values."""


def make_sweep(root: Path, points: int, *, repeats: int = 10, metrics: int = 40) -> None:
    """Writes a run of so many points, with so many metrics per repeat in two operations."""
    every = [_point(number) for number in range(points)]
    info = _begin(root, every, repeats)
    draw = random.Random(0)
    for point in every:
        texts = _texts(_record(info, point, metrics // len(OPERATIONS)), repeats, draw)
        for repeat, text in enumerate(texts):
            _write(root, point.id, repeat, text)


def make_comparison(root: Path, pairs: int, *, blocks: int = 5, metrics: int = 22) -> None:
    """Writes a comparison of so many pairs whose arms are alike, in so many blocks of four."""
    from orbax_bench_core.sweep import BLOCK_SIZE, Pair

    every = [
        Pair(baseline=_point(number, use_ocdbt=True), candidate=_point(number, use_ocdbt=False))
        for number in range(pairs)
    ]
    info = _begin(root, every, 1)
    draw = random.Random(0)
    for pair in every:
        for block in range(blocks):
            for slot, arm in enumerate(info.order(pair, block)):
                record = _record(info, pair, metrics // len(OPERATIONS))
                own = record.model_copy(update={"arm": arm, "block": block})
                repeat = block * BLOCK_SIZE + slot
                (text,) = _texts(own, 1, draw, first=repeat)
                _write(root, pair.id, repeat, text)


def _point(number: int, **options: bool) -> SweepPoint:
    from orbax_bench_core.config import CheckpointConfig
    from orbax_bench_core.sweep import SweepPoint

    return SweepPoint(
        benchmark="save_restore",
        options={"chunk_byte_size": number, **options},
        checkpoint=CheckpointConfig(),
        mesh=None,
        label=f"chunk_byte_size={number}",
    )


def _begin(root: Path, every: Sequence[SweepPoint | Pair], repeats: int) -> RunInfo:
    from orbax_bench_core.config import parse_suite
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.sweep import Expansion

    suite = parse_suite(_SUITE.format(repeats=repeats))
    return RunDirectory(str(root)).start(suite, Expansion(points=tuple(every)))


def _record(info: RunInfo, entry: SweepPoint | Pair, metrics: int) -> Record:
    """Returns a record whose values stand for those of its repeats."""
    from orbax_bench_core.measure import TIME, Sample, all_metrics
    from orbax_bench_core.records import Record, State

    others = [metric for metric in all_metrics() if metric.name != TIME][: metrics - 1]
    units = {TIME: "s"} | {metric.name: metric.unit for metric in others}
    return Record(
        run_id=info.run_id,
        suite=info.suite_name,
        point_id=entry.id,
        point_name=entry.name,
        point=entry,
        repeat=0,
        warmup=False,
        status="passed",
        started_at=_BEGAN,
        duration_s=1.0,
        samples=tuple(
            Sample(operation, 0, name, -1.0, unit)
            for operation in OPERATIONS
            for name, unit in units.items()
        ),
        provenance=_PROVENANCE,
        state=State(num_bytes=2**26, digest={}),
    )


def _texts(record: Record, repeats: int, draw: random.Random, first: int = 0) -> Iterator[str]:
    """Yields the JSON of repeats, made from that of one: a model for each would take a minute."""
    from orbax_bench_core.measure import TIME

    pieces = _OWN.split(record.model_dump_json(indent=1))
    is_time = [sample.metric == TIME for sample in record.samples]
    for repeat in range(first, first + repeats):
        values = [math.exp(draw.gauss(0, NOISE)) if time else draw.random() for time in is_time]
        own = [str(repeat), *map(repr, values), ""]
        yield "".join(piece + value for piece, value in zip(pieces, own, strict=True))


def _write(root: Path, id_: str, repeat: int, text: str) -> None:
    folder = root / "records" / id_ / f"repeat_{repeat}"
    folder.mkdir(parents=True)
    (folder / "host_0.json").write_text(text)
