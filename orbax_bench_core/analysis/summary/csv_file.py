"""Table of all metrics of a run in one file, `summary.csv`."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import operator
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Final

from orbax_bench_core.analysis.summary.model import MetricSummary
from orbax_bench_core.errors import presentable
from orbax_bench_core.records import Layout

if TYPE_CHECKING:
    import numpy as np

NUMBERS: Final = ("mean", "median", "q25", "q75", "p99", "minimum", "maximum")
"""Aggregates of a metric, as the fields of its summary end."""


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

    def write_columns(
        self,
        point: tuple[str, str],
        layout: Layout,
        size: tuple[int, int],
        numbers: np.ndarray,
    ) -> None:
        """Adds the lines of a point.

        Args:
            point: Its id and name.
            layout: Its operations, metrics and units.
            size: Number of hosts, and of values.
            numbers: Mean, median, ... of each, shape (numbers, samples).
        """
        (head,) = _lines([point])
        count = ",".join(map(str, size))
        texts = _texts(numbers.T)
        width = len(NUMBERS)
        self._text.write(
            "".join(
                f"{head},{names},{count},{','.join(texts[start : start + width])}\n"
                for names, start in zip(_named(layout), range(0, len(texts), width), strict=True)
            )
        )

    def end(self) -> None:
        """Hands the file back to whoever opened it."""
        self._text.detach()


def _lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns rows of texts as they stand in a table, without the ends of their lines."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="")
    found = []
    for row in rows:
        writer.writerow(_safe(row))
        found.append(file.getvalue())
        file.seek(0)
        file.truncate()
    return found


def _safe(row: Iterable[object]) -> list[object]:
    """Returns a row whose texts are no formulas to a spreadsheet, nor obeyed by a terminal."""
    return [_text(value) if isinstance(value, str) else value for value in row]


def _text(value: str) -> str:
    text = presentable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


@functools.lru_cache(maxsize=256)
def _named(layout: Layout) -> list[str]:
    """Returns operation, metric and unit of each sample as they stand in a table."""
    return _lines(zip(layout.operations, layout.metrics, layout.units, strict=True))


def _texts(numbers: np.ndarray) -> list[str]:
    """Returns the `repr` of each number, in a sixth of its time where JSON writes the same."""
    import msgspec
    import numpy as np

    values, size = numbers.ravel().tolist(), np.abs(numbers)
    if values and ((size >= _LEAST_PLAIN) & (size < _MOST_PLAIN) | (size == 0)).all():
        return msgspec.json.encode(values).decode()[1:-1].split(",")
    return list(map(repr, values))


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\n")
"""Begins of formulas to a spreadsheet; an apostrophe before one makes it text."""

_LEAST_PLAIN: Final = 1e-4
_MOST_PLAIN: Final = 1e16
"""Python writes numbers from one to the other without an exponent."""
