"""Step enforce-verdict: what a pipeline has found as its own state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis.verdicts import NotPassed, enforce, read_verdicts_file
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Exit, worst
from orbax_bench_core.steps.outlets import Outlets
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs
from orbax_bench_core.steps.pipeline.verdict import state_exit_code
from orbax_bench_core.steps.point import SAID

LEAK: Final = "LEAK"
_WORST: Final = ("REGRESSION", LEAK)


class NotComplete(NotPassed):
    """A run lacks something, or some of it has failed, and nothing has regressed."""


@tried_again
def enforce_verdict(
    verdict: str = "",
    *,
    verdicts: str | None = None,
    lacking: Sequence[str] = (),
    allow_inconclusive: bool = False,
    outlets: Outlets | None = None,
) -> Outputs[str]:
    """Fails unless a verdict is good enough and nothing is lacking.

    A verdict on runs that were measured apart only warns, whatever it is.

    Args:
        verdict: What compare-baseline or soak returned; empty where nothing is compared.
        verdicts: Place of its `verdicts.json`, which says how it was measured and what has
            regressed; None takes the word as it is.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS; never where an arm lacks an
            operation.
        outlets: Where the state of the suite is told as well; None for nowhere, as
            compare-baseline has told it.

    Returns:
        The value is the verdict.

    Raises:
        NotPassed: It is not good enough.
        NotComplete: Something is lacking, and nothing has regressed; the message names it.
        UserError: It is no verdict, the file cannot be read, or there is none for a webhook.
    """
    if outlets is not None and outlets.webhook is not None and verdicts is None:
        raise UserError("a webhook is told of a suite, which verdicts.json names: give --verdicts")
    refused: NotPassed | None = None
    try:
        if verdict == LEAK:
            raise NotPassed(verdict)
        warned = verdict and enforce(verdict, verdicts, allow_inconclusive=allow_inconclusive)
        if warned:
            print(f"{SAID}warning, for both sides were measured apart: {warned}", flush=True)
    except NotPassed as failure:
        refused = failure
    if lacking:
        regressed = refused is not None and verdict in _WORST
        lines = [
            *([str(refused)] if refused else []),
            *(line.strip() or "(no name)" for line in lacking),
        ]
        said = "; ".join(UserError(*lines).said)  # a sweep may lack thousands
        refused = NotPassed(said) if regressed else NotComplete(said)
    if outlets is not None and outlets.webhook is not None and verdicts is not None:
        found, folder = read_verdicts_file(verdicts), _folder_of(verdicts)
        code = worst([enforcement_exit_code(refused, verdict), state_exit_code(found, folder)])
        outlets.state_of(found, code, folder, lacking)
    if refused is not None:
        raise refused
    return Outputs(value=verdict)


def enforcement_exit_code(refused: NotPassed | None, verdict: str) -> int:
    """Returns the exit code of a verdict that was enforced.

    Args:
        refused: Why it was not good enough; None where it was.
        verdict: The verdict in one word; empty where nothing is compared.
    """
    if refused is None:
        return Exit.OK
    if isinstance(refused, NotComplete):
        return Exit.FAILED
    return Exit.REGRESSION if verdict in _WORST else Exit.INCONCLUSIVE


def _folder_of(place: str) -> str:
    """Returns the folder of a file, local or gs://, whatever folder a command is called in."""
    return place.rpartition("/")[0] if "://" in place else str(Path(place).absolute().parent)
