"""What a benchmark gives back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath


class UnmetNeed(Exception):
    """A benchmark cannot run here; the message is one line that names what it needs.

    The repeat fails and is not tried again. Raise it before anything is begun, and the worker goes
    on with the next repeat as if this one had never been.
    """


class VerificationError(Exception):
    """Restored values are not the values that were saved."""


@dataclasses.dataclass(kw_only=True)
class TestResult:
    """The outcome of one repeat.

    Attributes:
        metrics: What was measured.
        inventory_path: What the record lists the files of, for a benchmark that loads a checkpoint
            from elsewhere; None for what the repeat left under its own `path`.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    metrics: Metrics
    inventory_path: epath.Path | None = None
