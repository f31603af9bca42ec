"""A comparison of two runs as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from orbax_bench_core.compare.ratios import NO_VERDICT, Comparison, Ratio, Unmatched
from orbax_bench_core.report.text import percent, seconds, table_cell

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
    lines += _unmatched("Only in the baseline", comparison.only_baseline)
    lines += _unmatched("Only in the candidate", comparison.only_candidate)
    if not comparison.ratios:
        lines.append("\nNo point is in both runs: nothing can be compared.")
    return "\n".join(lines) + "\n"


def _unmatched(heading: str, points: Sequence[Unmatched]) -> list[str]:
    lines = []
    for found in points:
        lines.append(f"\n{heading}: {found.point}")
        if found.differs:
            lines.append(f"(the nearest point there differs in {'; '.join(found.differs)})")
    return lines


def _line(row: Ratio) -> str:
    cells = (
        table_cell(row.operation),
        seconds(row.baseline.median),
        percent(row.baseline.spread),
        seconds(row.candidate.median),
        percent(row.candidate.spread),
        "–" if row.ratio is None else f"{row.ratio:.3f}",
    )
    return f"| {' | '.join(cells)} |"
