"""Fixtures of verdicts."""

from tests.support.verdicts import (  # noqa: F401 - fixtures
    eventful,
    make_operation,
    make_report,
    make_verdicts,
)
