"""Counts: claims of the form "0 of 200", each trial a command that exits with 0 when it holds."""

from perf.counts.runner import main as make
from perf.counts.table import Count

__all__ = ["Count", "make"]
