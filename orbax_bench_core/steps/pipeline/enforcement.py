"""Step enforce-verdict: what a pipeline has found as its own state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.verdicts import NotPassed, enforce
from orbax_bench_core.steps.pipeline.outputs import Outputs

LEAK: Final = "LEAK"


class NotComplete(NotPassed):
    """A run lacks something, or some of it has failed."""


def enforce_verdict(
    verdict: str = "",
    *,
    verdicts: str | None = None,
    lacking: Sequence[str] = (),
    allow_inconclusive: bool = False,
) -> Outputs[str]:
    """Fails unless a verdict is good enough and nothing is lacking.

    Args:
        verdict: What compare-baseline or soak returned; empty where nothing is compared.
        verdicts: Path of its `verdicts.json`, to say what has regressed.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS; never where an arm lacks an
            operation.

    Returns:
        The value is the verdict.

    Raises:
        NotPassed: It is not good enough.
        NotComplete: Something is lacking; the message names it.
        UserError: It is no verdict.
    """
    if verdict == LEAK:
        raise NotPassed(verdict)
    if verdict:
        enforce(verdict, verdicts, allow_inconclusive=allow_inconclusive)
    if lacking:
        raise NotComplete("; ".join(lacking))
    return Outputs(value=verdict)
