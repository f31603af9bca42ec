"""A run's results as a Markdown page and as a self-contained HTML page."""

from __future__ import annotations

import itertools
from typing import Any

from orbax_bench_core.report import text
from orbax_bench_core.results.record import Record
from orbax_bench_core.results.run_directory import RunInfo
from orbax_bench_core.results.summary import RunSummary


def markdown_page(info: RunInfo, summary: RunSummary, example: Record | None) -> str:
    """Returns `report.md`.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
    """
    return _render("report.md.jinja", info, summary, example)


def html_page(info: RunInfo, summary: RunSummary, example: Record | None) -> str:
    """Returns `report.html`, which needs no other file and no network.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
    """
    return _render("report.html.jinja", info, summary, example)


def _render(template: str, info: RunInfo, summary: RunSummary, example: Record | None) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.report"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["cell"] = text.table_cell
    return environment.get_template(template).render(
        info=info,
        headings=text.OPERATION_HEADINGS,
        groups=_groups(summary),
        problems=[point for point in summary.points if point.failed or point.skipped],
        flags=[f"{p.point} {p.point_id}: {p.flag}" for p in summary.points if p.flag is not None],
        facts=_facts(example),
    )


def _groups(summary: RunSummary) -> list[dict[str, Any]]:
    slowest = max((op.time.maximum for op in summary.operations), default=0.0) or 1.0
    groups = []
    for (point_id, name), found in itertools.groupby(
        summary.operations, key=lambda op: (op.time.point_id, op.time.point)
    ):
        operations = list(found)
        remarks = [f"! {op.flag}" for op in operations if op.flag is not None]
        remarks += [
            text.straggler_sentence(op.time.operation, op.straggler)
            for op in operations
            if op.straggler is not None
        ]
        rows = [
            {
                "cells": text.operation_cells(op),
                "low": 100 * op.time.minimum / slowest,
                "median": 100 * op.time.median / slowest,
                "high": 100 * op.time.maximum / slowest,
            }
            for op in operations
        ]
        groups.append({"id": point_id, "name": name, "rows": rows, "remarks": remarks})
    return groups


def _facts(example: Record | None) -> dict[str, str]:
    """Returns what the run ran on, as label and text."""
    if example is None:
        return {}
    provenance = example.provenance
    host, devices = provenance["host"], provenance["devices"]
    facts = {
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{text.num_bytes(host['memory_bytes'])} memory",
        "kernel": host["kernel"],
        "versions": ", ".join(f"{name} {v}" for name, v in provenance["versions"].items()),
        "code": f"{provenance['git']['commit']}, dirty: {provenance['git']['dirty']}",
    }
    if isinstance(devices, dict):
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    if example.state is not None:
        facts["checkpoint size"] = text.num_bytes(example.state.num_bytes)
    return facts
