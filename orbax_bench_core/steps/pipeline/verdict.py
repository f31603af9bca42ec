"""Step compare-baseline: the verdict of a run."""

from __future__ import annotations

from orbax_bench_core.analysis.verdicts import VerdictReport, compare_stored
from orbax_bench_core.exit_codes import Ending, Exit, exit_code
from orbax_bench_core.lineage import bounded_metrics
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps.conclusions import publish_verdicts
from orbax_bench_core.steps.notifiers import Notifiers
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.settling import unfinished


def comparison_outcomes(found: VerdictReport, output_directory: str) -> tuple[Ending, Ending]:
    """Returns what the verdicts say, and whether the run directory of the candidate lacks repeats.

    A step that was lost leaves no failure, so that the verdicts alone could be a PASS.
    """
    run = RunDirectory(output_directory)
    lost = run.exists() and bool(unfinished(Run(run)))
    return found.outcome, Ending(incomplete=lost)


@tried_again
def compare_baseline(
    output_directory: str, *, baseline: str = "", notifiers: Notifiers | None = None
) -> Outputs[str]:
    """Judge a run; returns REGRESSION, PASS or INCONCLUSIVE.

    Both its arms are compared, or the run with a stored baseline, which only warns below 2x.

    Args:
        output_directory: The run directory that is looked at.
        baseline: A stored baseline, a registry of them, REGISTRY/NAME with the id, label, commit or
            tag of a capture, or a run directory; by default both arms of the run.
        notifiers: Where else the verdict is told; None for what the environment variables say.

    Returns:
        The value is the verdict in one word; `verdicts`, `comparison` and `report` are files of the
        run directory, and `ratios` are candidate over baseline by point and operation.

    Raises:
        UserError: There is no run here, or nothing to compare it with.
    """
    run = RunDirectory(output_directory)
    notifiers = notifiers or Notifiers.of()
    with notifiers.on_failure(None, output_directory):
        found = compare_stored(baseline or output_directory, output_directory)
        publish_verdicts(run, found)
    told = notifiers.webhook is not None
    code = exit_code(*comparison_outcomes(found, output_directory)) if told else int(Exit.OK)
    notifiers.verdicts(found, code, output_directory)
    said = {"baseline": baseline or "arm", "verdict": found.word}
    judged = (
        (f"{point.point} {point.point_id} {operation.operation} ratio", operation.verdict.ratio)
        for point in found.points
        for operation in point.operations
        if operation.verdict.ratio is not None
    )
    files = (
        ("verdicts", "verdicts.json", "verdicts"),
        ("comparison", "verdicts.md", "comparison"),
        ("report", "verdicts.html", "verdicts-report"),
    )
    named = {output: Output.of_run(run, name, kind, more=said) for output, name, kind in files}
    named["ratios"] = Output(metadata=bounded_metrics(judged))
    return Outputs(value=found.word, named=named)
