"""Step enforce-verdict: what a pipeline has found as its own state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from orbax_bench_core.analysis.verdicts import VerdictReport, read_verdicts_file, what_decided
from orbax_bench_core.errors import UserError, shown
from orbax_bench_core.exit_codes import Ending, exit_code
from orbax_bench_core.steps.notifiers import Notifiers
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs
from orbax_bench_core.steps.pipeline.verdict import comparison_outcomes
from orbax_bench_core.steps.point import SAID

WORDS: Final = ("", "PASS", "INCONCLUSIVE", "REGRESSION")
LEAK: Final = "LEAK"


class NotPassed(Exception):
    """What a pipeline found is not good enough; `code` is the exit code that says so."""

    def __init__(self, said: str, code: int) -> None:
        """Keeps the reasons, for people, and the code."""
        super().__init__(said)
        self.code = code


@tried_again
def enforce_verdict(
    verdict: str = "",
    *,
    verdicts: str | None = None,
    lacking: Sequence[str] = (),
    allow_inconclusive: bool = False,
    notifiers: Notifiers | None = None,
) -> Outputs[str]:
    """Fail unless a verdict is good enough and nothing is lacking; returns the verdict.

    A verdict on runs that were measured apart, as `verdicts.json` tells, only warns below 2x;
    without that file the word counts as it is.

    Args:
        verdict: The word that compare-baseline or soak returned; empty without any.
        verdicts (FILE): verdicts.json of the run, to say what regressed.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
        allow_inconclusive: Exit with 0 rather than 4 when there is no clear verdict; never where an
            arm lacks an operation.
        notifiers: Where the state of the suite is told as well; None for nowhere, as
            compare-baseline has told it.

    Returns:
        The value is the verdict.

    Raises:
        NotPassed: It is not good enough, or something is lacking; the message names it.
        UserError: It is no verdict or not that of the file, the file cannot be read, or there is
            none for a webhook.
    """
    if notifiers is not None and notifiers.webhook is not None and verdicts is None:
        raise UserError("a webhook is told of a suite, which verdicts.json names: give --verdicts")
    if verdict not in (*WORDS, LEAK):
        raise UserError(f"not a verdict: {shown(verdict)}; it is one of {', '.join(WORDS[1:])}")
    report = None if verdicts is None else read_verdicts_file(verdicts)
    found = Ending(word=verdict)
    if verdict and report is not None:
        if report.word != verdict:
            raise UserError(f"{verdicts} says {report.word}, and the verdict given is {verdict}")
        found = report.outcome
    if found.only_warns and verdict != "PASS":
        said = f"{verdict}: {what_decided(verdict, report)}" if report else verdict
        print(f"{SAID}warning, for both sides were measured apart: {said}", flush=True)
    own = exit_code(found, allow_inconclusive=allow_inconclusive)
    code = exit_code(found, incomplete=bool(lacking), allow_inconclusive=allow_inconclusive)
    if notifiers is not None and notifiers.webhook is not None and report is not None:
        folder = _folder_of(verdicts or "")
        state = exit_code(
            *comparison_outcomes(report, folder),
            incomplete=bool(lacking),
            allow_inconclusive=allow_inconclusive,
        )
        notifiers.state_of(report, state, folder, lacking)
    if code:
        lines = [line.strip() or "(no name)" for line in lacking]
        # A sweep may lack thousands.
        said = "; ".join(UserError(*(_reasons(verdict, report) if own else ()), *lines).said)
        raise NotPassed(said, code)
    return Outputs(value=verdict)


def _reasons(verdict: str, report: VerdictReport | None) -> Iterator[str]:
    """Yields why a verdict is not good enough."""
    if report is None:
        yield verdict
        return
    if report.exploratory:
        yield report.exploratory
    if verdict != "PASS":
        yield f"{verdict}: {what_decided(verdict, report)}"
    yield from (f"left out: {line}" for line in report.left_out)
    yield from (f"{point.point}: an arm failed" for point in report.points if point.failed)


def _folder_of(place: str) -> str:
    """Returns the folder of a file, local or gs://, whatever folder a command is called in."""
    return place.rpartition("/")[0] if "://" in place else str(Path(place).absolute().parent)
