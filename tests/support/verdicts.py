"""Comparisons in which everything occurs that a report must show."""

import datetime
import math
import random
import statistics
import zlib

import pytest

from orbax_bench_core.analysis import verdicts
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import SeriesHealth, Verdict

NASTY = "save_restore[kind=<script>alert(1)</script>|[red]&amp; *x* `y`]"


def build_operation(
    operation="save", word="PASS", ratio=1.01, *, width=0.04, blocks=10, noise=0.03, **fields
):
    """An operation whose series are drawn around a ratio; any field can be given.

    `reason` and `health` go where they belong; an operation with `blocks=0` is unpaired.
    """
    draw = random.Random(f"{operation} {ratio} {blocks}")
    n = 2 * blocks or 20
    baseline = tuple(1.5 * math.exp(draw.gauss(0, noise)) for _ in range(n))
    candidate = tuple(1.5 * (ratio or 1) * math.exp(draw.gauss(0, noise)) for _ in range(n))
    verdict = {
        "word": word,
        "reason": fields.pop("reason", ""),
        "ratio": ratio,
        "low": None if ratio is None else ratio * math.exp(-width),
        "high": None if ratio is None else ratio * math.exp(width),
        "operations": n,
        "look": 0,
        "settled": word != "INCONCLUSIVE",
        **fields.pop("verdict", {}),
    }
    health = {"baseline": (), "candidate": ()} | fields.pop("flags", {})
    times = {"baseline": baseline, "candidate": candidate}
    built = {
        "operation": operation,
        "primary": True,
        "verdict": Verdict(**verdict),
        "health": {
            arm: SeriesHealth(n=n, median=statistics.median(times[arm]), flags=flags)
            for arm, flags in health.items()
        },
        "times": times,
        "block_log_ratios": tuple(
            statistics.fmean(map(math.log, candidate[2 * block : 2 * block + 2]))
            - statistics.fmean(map(math.log, baseline[2 * block : 2 * block + 2]))
            for block in range(blocks)
        ),
    }
    return verdicts.OperationVerdict(**built | fields)


def build_point(name="save_restore[use_ocdbt=true]", *operations, **fields):
    """A point of some operations; its word is that of the worst."""
    operations = operations or (build_operation(),)
    said = [found.verdict.word for found in operations if found.primary]
    worst = next((w for w in ("REGRESSION", "INCONCLUSIVE") if w in said), "PASS")
    built = {"point_id": f"{zlib.crc32(name.encode()):08x}", "word": worst, "mode": "paired"}
    built["blocks"] = len(operations[0].block_log_ratios)
    return verdicts.PointVerdict(point=name, operations=operations, **built | fields)


def build_report(*points, **fields):
    """A report on some points; its word is that of the worst."""
    said = [point.word for point in points]
    worst = next((w for w in ("REGRESSION", "INCONCLUSIVE") if w in said), "PASS")
    built = {
        "suite": "a suite",
        "run_id": "run-1",
        "baseline": "environment=old",
        "candidate": "environment=new",
        "word": worst,
        "gate": GateConfig(),
        "judged_at": datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC),
    }
    return verdicts.VerdictReport(points=points, **built | fields)


@pytest.fixture(scope="session")
def make_operation():
    return build_operation


@pytest.fixture(scope="session")
def make_verdicts():
    return build_point


@pytest.fixture(scope="session")
def make_report():
    return build_report


def build_eventful():
    drifting = {"candidate": ("drifts by +15 % from start to end",)}
    return build_report(
        build_point("save_restore[a=1]", build_operation("save"), build_operation("load")),
        build_point(
            NASTY,
            build_operation(
                "save|all", primary=False, word="REGRESSION", ratio=1.4, false_discovery=0.04
            ),
            build_operation("save", "REGRESSION", 1.21, flags=drifting),
            switching="taking turns cost 12 s",
        ),
        build_point(
            "save_restore[a=2]",
            build_operation("save", "INCONCLUSIVE", None, reason="no load in the candidate"),
            failed=True,
            reason="candidate failed: ValueError: a|b <b>bold</b> [red]",
        ),
        build_point(
            "save_restore[a=3]",
            build_operation("save", "INCONCLUSIVE", 1.06, width=0.2, blocks=0),
            mode="unpaired",
        ),
        unmatched=(
            verdicts.Unmatched(
                side="baseline", point="gone[x]", point_id="1234", differs=("options.a: 1 | 4",)
            ),
            verdicts.Unmatched(side="candidate", point="new <b>", point_id="5678"),
        ),
        notes=("jax is 0.10.1 | [old] in the baseline",),
    )


@pytest.fixture(scope="session")
def eventful():
    """A regression with a nasty name, a pass, a failed arm, an unpaired point; unmatched ones."""
    return build_eventful()
