"""Measuring one sweep point as a step of a pipeline, or both arms of it."""

from __future__ import annotations

import contextlib
from typing import Final

from orbax_bench_core.analysis.verdicts import PointVerdict
from orbax_bench_core.config import parse_suite
from orbax_bench_core.execute import Progress, RunSettings, measuring_lock, run_points
from orbax_bench_core.limits import ensure_limits
from orbax_bench_core.records import Record, RunDirectory, RunInfo
from orbax_bench_core.steps.comparison import compare_arms
from orbax_bench_core.sweep import Pair, entry_from_json

SAID: Final = "orbax-bench: "
"""Begins every line that a step prints for people."""


class PointFailed(Exception):
    """A sweep point failed in a step that was asked to be strict."""


def run_point(
    point_json: str,
    output_directory: str,
    *,
    settings: RunSettings,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
) -> tuple[RunInfo, list[Record]]:
    """Runs what a point still lacks: its repeats, or blocks of both its arms until a verdict.

    Args:
        point_json: The point, as `plan` returned it.
        output_directory: The run directory.
        settings: How to run it.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat is an error rather than data.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Returns:
        The run, and the records of the point's measured repeats and warm-ups.

    Raises:
        UserError: The directory holds no run.
        PointFailed: A repeat failed and `strict` is set.
    """
    point = entry_from_json(point_json)
    run = RunDirectory(output_directory)
    info = run.read_info()
    loaded = parse_suite(info.suite_text, info.suite_file)
    with measuring_lock(_say) if lock else contextlib.nullcontext():
        if isinstance(point, Pair):
            compare_arms(run, info, loaded, [point], settings, _Log(), _say)
        else:
            run_points(run, info, loaded, [point], settings, _Log(), _say)
            if limits:
                ensure_limits(run, _say)
    records = run.point_records(point)
    failed = [record for record in records if record.status == "failed" and not record.warmup]
    if strict and failed:
        reason = failed[0].error
        raise PointFailed(f"{point.name} {point.id}: {reason.message if reason else 'failed'}")
    return info, records


class _Log:
    """Says what happens in lines, for the log of a step."""

    def __call__(self, progress: Progress) -> None:
        if progress.repeat is not None and progress.arm is None:
            error = progress.repeat.error
            reason = "" if error is None else f": {error.type}: {error.message}"
            status = progress.repeat.status
            _say(f"{progress.point.name} repeat {progress.index}: {status}{reason}")

    def judged(self, verdict: PointVerdict) -> None:
        ratios = ", ".join(
            f"{one.operation} {one.verdict.ratio:.3f}"
            for one in verdict.operations
            if one.primary and one.verdict.ratio is not None
        )
        said = verdict.reason or ratios
        _say(f"{verdict.point} after {verdict.blocks} blocks: {verdict.word}: {said}")


def _say(line: str) -> None:
    print(f"{SAID}{line}", flush=True)  # the log of a pipeline step is what it prints
