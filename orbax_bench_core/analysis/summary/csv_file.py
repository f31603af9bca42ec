"""Table of all metrics of a run in one file, `summary.csv`."""

from __future__ import annotations

import csv
import dataclasses
import io
import operator
from collections.abc import Iterable
from typing import IO, Final

from orbax_bench_core.analysis.summary.model import MetricSummary
from orbax_bench_core.errors import presentable


class SummaryTable:
    """`summary.csv`: one line per point, operation and metric."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins the table in `file`, which stays open."""
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        fields = [field.name for field in dataclasses.fields(MetricSummary)]
        self._values = operator.attrgetter(*fields)
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(fields)

    def write(self, metrics: Iterable[MetricSummary]) -> None:
        """Adds lines."""
        # `asdict` would copy every value, which takes longer than all else of a large table.
        self._writer.writerows(map(_safe, map(self._values, metrics)))

    def end(self) -> None:
        """Hands the file back to whoever opened it."""
        self._text.detach()


def _safe(row: Iterable[object]) -> list[object]:
    """Returns a row whose texts are no formulas to a spreadsheet, nor obeyed by a terminal."""
    return [_text(value) if isinstance(value, str) else value for value in row]


def _text(value: str) -> str:
    text = presentable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n")
"""Begins of formulas to a spreadsheet; an apostrophe before one makes it text."""
