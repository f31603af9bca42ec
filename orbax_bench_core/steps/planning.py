"""Planning and collection of a run whose points are measured in steps, also on other machines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from orbax_bench_core.config import Source, parse_suite, with_keys
from orbax_bench_core.execute import Session
from orbax_bench_core.records import AlreadyRecorded, Record, RunDirectory


def plan(suite_text: str, output_directory: str, arms: str = "") -> list[str]:
    """Expands a suite and begins its run directory.

    Args:
        suite_text: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.
        arms: An `arms` block, as YAML, for a suite that has none; empty leaves the suite as it is.

    Returns:
        The sweep points or pairs, each as a line of JSON.

    Raises:
        UserError: The suite is invalid, or the directory cannot be used.
    """
    if arms:
        suite_text = with_keys(suite_text, {"arms": Source(arms, "arms").data})
    session = Session.begin(parse_suite(suite_text), output_directory)
    return [entry.model_dump_json() for entry in session.entries]


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
