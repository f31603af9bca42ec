"""A run's results as a Markdown page and as a self-contained HTML page."""

from __future__ import annotations

from typing import Any

from orbax_bench_core.records.record import Record
from orbax_bench_core.records.run_directory import RunInfo
from orbax_bench_core.report import text
from orbax_bench_core.report.operations_table import (
    LIMITS_LEGEND,
    NO_LIMITS,
    RunLimits,
    headings,
    point_tables,
)
from orbax_bench_core.results.summary import RunSummary


def markdown_page(
    info: RunInfo, summary: RunSummary, example: Record | None, limits: RunLimits = NO_LIMITS
) -> str:
    """Returns `report.md`.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
        limits: How near its operations come to their limits; empty when none were measured.
    """
    return _render("report.md.jinja", info, summary, example, limits)


def html_page(
    info: RunInfo, summary: RunSummary, example: Record | None, limits: RunLimits = NO_LIMITS
) -> str:
    """Returns `report.html`, which needs no other file and no network.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
        limits: How near its operations come to their limits; empty when none were measured.
    """
    return _render("report.html.jinja", info, summary, example, limits)


def _render(
    template: str, info: RunInfo, summary: RunSummary, example: Record | None, limits: RunLimits
) -> str:
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
        headings=headings(limits),
        groups=_groups(summary, limits),
        limits_legend=LIMITS_LEGEND if limits else "",
        problems=[point for point in summary.points if point.failed or point.skipped],
        flags=[f"{p.point} {p.point_id}: {p.flag}" for p in summary.points if p.flag is not None],
        facts=_facts(example),
    )


def _groups(summary: RunSummary, limits: RunLimits) -> list[dict[str, Any]]:
    slowest = max((op.time.maximum for op in summary.operations), default=0.0) or 1.0
    groups = []
    for table in point_tables(summary, limits):
        rows = [
            {
                "cells": cells,
                "low": 100 * operation.time.minimum / slowest,
                "median": 100 * operation.time.median / slowest,
                "high": 100 * operation.time.maximum / slowest,
            }
            for cells, operation in zip(table.rows, table.operations, strict=True)
        ]
        remarks = [f"! {said.text}" if said.serious else said.text for said in table.remarks]
        groups.append({"id": table.point_id, "name": table.name, "rows": rows, "remarks": remarks})
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
