"""Fixtures of summaries."""

from tests.support.summaries import eventful_run, pages  # noqa: F401 - fixtures
