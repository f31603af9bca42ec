"""A run cut into steps that may happen on different machines, as in a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from orbax_bench_core.config.load import LoadedSuite, parse_suite
from orbax_bench_core.execute.host_lock import measuring_lock
from orbax_bench_core.execute.limits.of_run import ensure_limits
from orbax_bench_core.execute.orchestrator import Progress, RunSettings, run_points
from orbax_bench_core.results.record import Record
from orbax_bench_core.results.run_directory import RunDirectory, RunInfo
from orbax_bench_core.sweep.isolate import expand
from orbax_bench_core.sweep.point import SweepPoint

SAID = "orbax-bench: "
"""Begins every line that a step prints for people."""


class PointFailed(Exception):
    """A sweep point failed in a step that was asked to be strict."""


def plan(suite_text: str, output_directory: str) -> list[str]:
    """Expands a suite and begins its run directory.

    Args:
        suite_text: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.

    Returns:
        The sweep points, each as a line of JSON.

    Raises:
        SuiteError: The suite is invalid, or the directory cannot be used.
    """
    loaded = parse_suite(suite_text)
    expansion = expand(loaded)
    RunDirectory(output_directory).start(loaded, expansion)
    return [point.to_json() for point in expansion.points]


def run_point(
    point_json: str,
    output_directory: str,
    *,
    settings: RunSettings,
    limits: bool = True,
    strict: bool = False,
) -> tuple[RunInfo, list[Record]]:
    """Runs every repeat of one point that has no finished record yet.

    Args:
        point_json: The point, as `plan` returned it.
        output_directory: The run directory.
        settings: How to run it.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat is an error rather than data.

    Returns:
        The run, and the records of the point's measured repeats and warm-ups.

    Raises:
        SuiteError: The directory holds no run.
        PointFailed: A repeat failed and `strict` is set.
    """
    point = SweepPoint.from_json(point_json)
    run = RunDirectory(output_directory)
    info = run.read_info()
    loaded: LoadedSuite = parse_suite(info.suite_text, info.suite_file)
    with measuring_lock(_say):
        run_points(run, info, loaded, [point], settings, _say_progress)
        if limits:
            ensure_limits(run, _say)
    records = run.point_records(point)
    failed = [record for record in records if record.status == "failed" and not record.warmup]
    if strict and failed:
        reason = failed[0].error
        raise PointFailed(f"{point.name} {point.id}: {reason.message if reason else 'failed'}")
    return info, records


def write_records(records: Iterable[Record], path: str) -> None:
    """Writes records as JSON lines, as they travel from step to step."""
    lines = [record.model_dump_json() for record in records]
    Path(path).write_text("".join(f"{line}\n" for line in lines))


def collect_records(run: RunDirectory, paths: Iterable[str]) -> None:
    """Puts records that travelled as JSON lines into a run directory that lacks them.

    Args:
        run: The run directory.
        paths: Files that `write_records` wrote, on any machine.
    """
    for path in paths:
        for line in Path(path).read_text().splitlines():
            record = Record.model_validate_json(line)
            known = run.read_record(
                record.point, record.repeat, warmup=record.warmup, host=record.host
            )
            if known is None:
                run.write_record(record)


def _say(line: str) -> None:
    print(f"{SAID}{line}", flush=True)  # the log of a pipeline step is what it prints


def _say_progress(progress: Progress) -> None:
    if progress.repeat is not None:
        error = progress.repeat.error
        reason = "" if error is None else f": {error.type}: {error.message}"
        _say(f"{progress.point.name} repeat {progress.index}: {progress.repeat.status}{reason}")
