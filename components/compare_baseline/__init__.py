"""The compare-baseline component."""

from .component import compare_baseline as compare_baseline
