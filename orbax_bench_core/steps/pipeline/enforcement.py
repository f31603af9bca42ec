"""Step enforce-verdict: the verdict as the state of its pipeline."""

from __future__ import annotations

from orbax_bench_core.analysis.verdicts import enforce
from orbax_bench_core.steps.pipeline.outputs import Outputs


def enforce_verdict(
    verdict: str, *, verdicts: str | None = None, allow_inconclusive: bool = False
) -> Outputs[str]:
    """Fails unless a verdict is good enough.

    Args:
        verdict: What compare-baseline returned.
        verdicts: Path of its `verdicts.json`, to say what has regressed.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS; never where an arm lacks an
            operation.

    Returns:
        The value is the verdict.

    Raises:
        NotPassed: It is not good enough.
        UserError: It is no verdict.
    """
    enforce(verdict, verdicts, allow_inconclusive=allow_inconclusive)
    return Outputs(value=verdict)
