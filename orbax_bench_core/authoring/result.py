"""What a benchmark gives back."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.measure import Metrics


class VerificationError(Exception):
    """Restored values are not the values that were saved."""


@dataclasses.dataclass(kw_only=True)
class TestResult:
    """The outcome of one repeat.

    Attributes:
        metrics: What was measured.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    metrics: Metrics
