"""Steps that judge a pipeline's run: its comparison, what that is worth, and its capture."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from orbax_bench_core.analysis.acceptance import with_acceptance
from orbax_bench_core.analysis.verdicts import (
    VerdictReport,
    compare_stored,
    headline,
    read_verdicts_file,
)
from orbax_bench_core.answers import unfinished
from orbax_bench_core.baselines import publish_run
from orbax_bench_core.engine.outputs import Outputs, StepOutput
from orbax_bench_core.engine.point import SAID
from orbax_bench_core.engine.retrying import tried_again
from orbax_bench_core.errors import UserError, shown
from orbax_bench_core.exit_codes import VERDICTS, Outcome, exit_code
from orbax_bench_core.gate import Word
from orbax_bench_core.lineage import artifact_metadata, baseline_digest, bounded_metrics
from orbax_bench_core.publishing import Notifiers, publish_verdicts
from orbax_bench_core.records import Run, RunDirectory


class NotPassed(Exception):
    """What a pipeline found is not good enough; `code` is the exit code that says so."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


def compared(found: VerdictReport, output_directory: str) -> Outcome:
    """Returns the outcome of a comparison, of which the candidate's run directory may lack repeats.

    A step that was lost leaves no failure, so that the verdicts alone could be a PASS.
    """
    run = RunDirectory(output_directory)
    return found.outcome.lacking(run.exists() and unfinished(Run(run)))


@tried_again
def compare_baseline(
    output_directory: str, *, baseline: str = "", notifiers: Notifiers | None = None
) -> Outputs[str]:
    """Judge a run; returns REGRESSION, PASS or INCONCLUSIVE.

    Both its arms are compared, or the run with a stored baseline, which only warns below 2x.

    Args:
        output_directory: The run directory to judge.
        baseline: A stored baseline, a registry of them, REGISTRY/NAME with the id, label, commit or
            tag of a capture, or a run directory; by default both arms of the run.
        notifiers: Where else the verdict is told; None for what the environment variables say.

    Returns:
        The value is the verdict in one word; `verdicts`, `comparison` and `report` are files of the
        run directory, and `ratios` are candidate over baseline by point and operation, with the
        word as `verdict`: the experiment of a run on Vertex AI shows both.

    Raises:
        UserError: There is no run here, or nothing to compare it with.
    """
    run = RunDirectory(output_directory)
    notifiers = notifiers or Notifiers.of()
    with notifiers.on_failure(output_directory):
        found = compare_stored(baseline or output_directory, output_directory)
        found = with_acceptance(found, output_directory)
        publish_verdicts(run, found)
    told = notifiers.webhook is not None
    failed = told and compared(found, output_directory).incomplete
    notifiers.verdicts(found, output_directory, failed=failed)
    said = {"baseline": baseline or "arm", "verdict": found.word}
    files = (
        ("verdicts", "verdicts.json", "verdicts"),
        ("comparison", "verdicts.md", "comparison"),
        ("report", "verdicts.html", "verdicts-report"),
    )
    named = {output: StepOutput.of_run(run, name, kind, more=said) for output, name, kind in files}
    named["ratios"] = StepOutput(metadata={"verdict": found.word, **bounded_metrics(ratios(found))})
    return Outputs(value=found.word, named=named)


def ratios(found: VerdictReport) -> Iterator[tuple[str, float]]:
    """Yields candidate over baseline, by point and operation.

    Yields:
        The name of a metric, `<point> <id> <operation> ratio`, and its ratio; above 1 the candidate
        is slower. Operations without a ratio are left out.
    """
    for point in found.points:
        for operation in point.operations:
            if operation.verdict.ratio is not None:
                name = f"{point.point} {point.point_id} {operation.operation} ratio"
                yield name, operation.verdict.ratio


@tried_again
def enforce_verdict(
    verdict: str = "",
    *,
    verdicts: str | None = None,
    lacking: Sequence[str] = (),
    allow_inconclusive: bool = False,
    notifiers: Notifiers | None = None,
) -> Outputs[str]:
    """Fail unless a verdict is good enough and nothing is missing; returns the verdict.

    If `verdicts.json` says that the runs were measured separately, a verdict only warns below 2x;
    without that file the word counts.

    Args:
        verdict: The word that compare-baseline or soak returned; empty without any.
        verdicts (FILE): verdicts.json of the run, to say what regressed.
        lacking: What aggregate, inspect-checkpoint, plan-save or recovery returned.
        allow_inconclusive: Exit with 0 rather than 4 when there is no clear verdict, unless an arm
            lacks an operation.
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
    _check(verdict)
    report = None if verdicts is None else read_verdicts_file(verdicts)
    found = Outcome(word=verdict)
    if verdict and report is not None:
        if report.word != verdict:
            raise UserError(f"{verdicts} says {report.word}, and the verdict given is {verdict}")
        found = report.outcome
    if found.only_warns and verdict != "PASS":
        said = f"{verdict}: {headline(report).text}" if report else verdict
        print(f"{SAID}warning, for both sides were measured apart: {said}", flush=True)
    own = exit_code(found, allow_inconclusive=allow_inconclusive)
    code = exit_code(found.lacking(lacking), allow_inconclusive=allow_inconclusive)
    if notifiers is not None and notifiers.webhook is not None and report is not None:
        folder = _folder_of(verdicts or "")
        notifiers.judged(report, compared(report, folder), folder, lacking)
    if code:
        lines = [line.strip() or "(no name)" for line in lacking]
        # A sweep may lack thousands.
        reasons = found.in_order(_reasons(verdict, report) if own else (), lines)
        said = "; ".join(UserError(*reasons).said)
        raise NotPassed(said, code)
    return Outputs(value=verdict)


def _check(verdict: str, allowed: Sequence[str] = VERDICTS) -> None:
    if verdict and verdict not in allowed:
        raise UserError(f"not a verdict: {shown(verdict)}; it is one of {', '.join(allowed)}")


def _reasons(verdict: str, report: VerdictReport | None) -> Iterator[str]:
    if report is None:
        yield verdict
        return
    if report.exploratory or verdict != "PASS":
        yield headline(report).said
    yield from (f"left out: {line}" for line in report.left_out)
    yield from (f"{point.point}: an arm failed" for point in report.points if point.failed)


def _folder_of(place: str) -> str:
    """Returns the folder of a file, local or gs://, whatever folder a command is called in."""
    return place.rpartition("/")[0] if "://" in place else str(Path(place).absolute().parent)


@tried_again
def publish_baseline(
    output_directory: str,
    registry: str,
    *,
    arm: str = "candidate",
    promote: bool = False,
    revision: str = "",
    force: bool = False,
    verdict: str = "",
    allow_inconclusive: bool = False,
) -> Outputs[str]:
    """Capture a run in a registry of baselines; returns the id of the capture, or none.

    It has every raw sample. enforce-verdict only warns of a slow-down between separate runs; here
    it counts, so that the next run is not compared with a slower one.

    Args:
        output_directory: The run directory.
        registry: The registry: a folder or a gs:// prefix.
        arm: Which side of a paired run: `baseline` or `candidate`.
        promote: Make it the baseline of its points.
        revision: File it under this; by default the commit of the code under test.
        force: Promote code with uncommitted changes.
        verdict (WORD): What compare-baseline returned; REGRESSION and INCONCLUSIVE are not
            captured.
        allow_inconclusive: Also capture an INCONCLUSIVE run.

    Returns:
        The value is the id of the capture, and empty where there is none; `baseline` is its folder
        in the registry.

    Raises:
        UserError: The run cannot be a baseline, or the word is none that a comparison returns.
    """
    _check(verdict, get_args(Word))
    run = RunDirectory(output_directory)
    if verdict not in ("", "PASS", *(["INCONCLUSIVE"] if allow_inconclusive else [])):
        print(f"{SAID}{output_directory} is not captured: {verdict}", flush=True)
        metadata = artifact_metadata("baseline", run, path=registry) | {"not_captured": verdict}
        return Outputs(value="", named={"baseline": StepOutput(metadata=metadata)})
    captured, folder = publish_run(
        run, registry, arm=arm, promote=promote, revision=revision or None, force=force
    )
    place = str(folder)
    metadata = artifact_metadata("baseline", run, digest=baseline_digest(place), path=place)
    metadata |= {"revision": captured.revision, "capture": captured.id, "code": captured.code.words}
    named = {"baseline": StepOutput(metadata=metadata, place=place)}
    return Outputs(value=captured.id, named=named)
