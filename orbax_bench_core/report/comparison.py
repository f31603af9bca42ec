"""A comparison of two runs as Markdown."""

from __future__ import annotations

import itertools

from orbax_bench_core.compare.ratios import NO_VERDICT, Comparison, Ratio
from orbax_bench_core.report.text import percent, seconds

_HEADER = (
    "| operation | baseline | spread | candidate | spread | ratio |",
    "|---|---:|---:|---:|---:|---:|",
)


def comparison_markdown(comparison: Comparison) -> str:
    """Returns a comparison as a Markdown page that says that it is no verdict."""
    lines = [
        "# Candidate against baseline",
        "",
        NO_VERDICT,
    ]
    for (point_id, point), rows in itertools.groupby(
        comparison.ratios, key=lambda row: (row.point_id, row.point)
    ):
        lines += ["", f"## {point} `{point_id}`", "", *_HEADER]
        lines += [_line(row) for row in rows]
    lines += [f"\nOnly in the baseline: {name}" for name in comparison.only_baseline]
    lines += [f"\nOnly in the candidate: {name}" for name in comparison.only_candidate]
    if not comparison.ratios:
        lines.append("\nNo point is in both runs: nothing can be compared.")
    return "\n".join(lines) + "\n"


def _line(row: Ratio) -> str:
    cells = (
        row.operation,
        seconds(row.baseline.median),
        percent(row.baseline.spread),
        seconds(row.candidate.median),
        percent(row.candidate.spread),
        "–" if row.ratio is None else f"{row.ratio:.3f}",
    )
    return f"| {' | '.join(cells)} |"
