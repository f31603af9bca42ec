"""Planning and collection of a run whose points are measured in steps, also on other machines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from orbax_bench_core.config import Source, UserError, parse_suite, with_keys, with_overrides
from orbax_bench_core.execute import Session
from orbax_bench_core.records import AlreadyRecorded, Record, RunDirectory

_NAMED: Final = 10
"""Points that a message names."""


def plan(suite_text: str, output_directory: str, arms: str = "", processes: int = 0) -> list[str]:
    """Expands a suite and begins its run directory.

    Args:
        suite_text: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.
        arms: An `arms` block, as YAML, for a suite that has none; empty leaves the suite as it is.
        processes: Host processes of each point of a suite that names none; 0 leaves it at one.

    Returns:
        The sweep points or pairs, each as a line of JSON.

    Raises:
        UserError: The suite is invalid, or the directory cannot be used.
    """
    if arms:
        suite_text = with_keys(suite_text, {"arms": Source(arms, "arms").data})
    suite = parse_suite(suite_text)
    if processes and "processes" not in suite.suite.execution.model_fields_set:
        suite = parse_suite(with_overrides(suite_text, [f"execution.processes={processes}"]))
    session = Session.begin(suite, output_directory)
    return [entry.model_dump_json() for entry in session.entries]


def entry_of_run(point: str, output_directory: str) -> str:
    """Returns an entry of a run as the line of JSON that a step takes.

    Args:
        point: The id of a point or a pair, or that line.
        output_directory: The run directory.

    Raises:
        UserError: The run has no such entry.
    """
    if point.lstrip().startswith("{"):
        return point
    entries = RunDirectory(output_directory).read_info().expansion.points
    for entry in entries:
        if entry.id == point:
            return entry.model_dump_json()
    known = ", ".join(entry.id for entry in entries[:_NAMED])
    more = f" and {len(entries) - _NAMED} more" if len(entries) > _NAMED else ""
    raise UserError(f"{output_directory} has no point {point}; it has {known}{more}")


def write_records(records: Iterable[Record], path: str) -> None:
    """Writes records as JSON lines, as they travel from step to step."""
    lines = [record.model_dump_json() for record in records]
    Path(path).write_text("".join(f"{line}\n" for line in lines))


def collect_records(run: RunDirectory, paths: Iterable[str]) -> None:
    """Puts records that travelled as JSON lines into a run directory that lacks them.

    What lies in the place of one and is not of that place stays: the report names it.
    """
    for path in paths:
        for line in Path(path).read_text().splitlines():
            record = Record.model_validate_json(line)
            known = run.read_record(
                record.point, record.repeat, warmup=record.warmup, host=record.host
            )
            if known is None:
                with contextlib.suppress(AlreadyRecorded):
                    run.write_record(record)
