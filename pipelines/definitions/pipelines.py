"""The pipelines: what each adds to its measurement, and what it shows at its end."""

from rich.console import Console

from orbax_bench_core import answers, pages
from orbax_bench_core.analysis.noise import calibration_document, calibration_of
from orbax_bench_core.analysis.summary import notes_lines, summarize
from orbax_bench_core.errors import UserError, one_line
from orbax_bench_core.exit_codes import Exit, exit_code
from orbax_bench_core.publishing import report_of
from orbax_bench_core.records import RunDirectory, load_run
from orbax_bench_pipelines.definitions.pipeline import (
    KEEP_DATA,
    LOCK,
    Finished,
    Parameter,
    Pipeline,
)
from orbax_bench_pipelines.definitions.steps import Steps


def add_to_sweep(steps: Steps) -> None:
    """Adds a comparison, where there is a baseline, and fails where points are lacking.

    A comparison fails by a regression of more than runs that were measured apart differ by.
    """
    steps.judge(baseline=steps.given["baseline"])


def add_regression(steps: Steps) -> None:
    """Adds the verdict, fails on a regression, and stores what does not fail.

    What only warns does not fail, so that the capture looks at the verdict itself.
    """
    how = ("baseline", "allow_inconclusive", "registry", "promote", "revision", "force")
    steps.judge(compare_arms=True, **{name: steps.given[name] for name in how})


def add_comparison(steps: Steps) -> None:
    """Adds the verdict, which is an answer and fails nothing."""
    steps.judge(compare_arms=True, only_shows=True)


def add_study(steps: Steps) -> None:
    """Adds the study."""
    samples = steps.aggregate().outputs["samples"]
    steps.add("study-async", output_directory=steps.directory, samples=samples)


def add_calibration(steps: Steps) -> None:
    """Adds the verdict, and how often and how widely identical arms were told apart."""
    samples = steps.aggregate().outputs["samples"]
    steps.add("compare-baseline", output_directory=steps.directory, samples=samples)
    steps.add(
        "calibrate",
        runs=[steps.directory, steps.given["earlier"]],
        save=steps.given["passport"],
        samples=samples,
    )


def conclude_sweep(finished: Finished, console: Console) -> int:
    """Shows a sweep, and its comparison with a baseline, and returns the exit code."""
    run = load_run(finished.directory)
    summary = summarize(run.repeats())
    for line in notes_lines(run.info):
        console.print(one_line(line), markup=False, highlight=False, soft_wrap=True)
    pages.print_document(report_of(run.directory, summary), console)
    found = [summary.outcome]
    if finished.arguments["baseline"] and (verdicts := _shown(finished, console, answers.VERDICTS)):
        found.append(verdicts.outcome)
    return exit_code(*found)


def conclude_regression(finished: Finished, console: Console) -> int:
    """Shows the verdicts of a run, and returns the exit code."""
    verdicts = _shown(finished, console, answers.VERDICTS)
    if verdicts is None:
        return Exit.FAILED
    return exit_code(verdicts.outcome, allow_inconclusive=finished.arguments["allow_inconclusive"])


def conclude_comparison(finished: Finished, console: Console) -> int:
    """Shows how many times as long the candidate takes; only what could not be measured fails."""
    verdicts = _shown(finished, console, answers.VERDICTS)
    failed = verdicts is None or any(point.unmeasured for point in verdicts.points)
    return exit_code(incomplete=failed)


def conclude_study(finished: Finished, console: Console) -> int:
    """Shows what each size saves; repeats that failed, or no study at all, are a failure."""
    study = _shown(finished, console, answers.ASYNC_STUDY)
    return Exit.FAILED if study is None else exit_code(study.outcome)


def conclude_calibration(finished: Finished, console: Console) -> int:
    """Shows how often identical arms were told apart and how noisy they are.

    A false alarm is what is counted here, so it fails nothing.
    """
    if finished.failure is not None:
        return Exit.FAILED
    earlier = finished.arguments["earlier"]
    found = calibration_of([finished.directory, *([earlier] if earlier else [])])
    pages.print_document(calibration_document(found), console)
    return 0


def _shown(
    finished: Finished, console: Console, answer: answers.Answer[answers.Found]
) -> answers.Found | None:
    """Shows an answer of a run; None if it has none, and its steps have said why."""
    try:
        found = answer.read(RunDirectory(finished.directory))
    except UserError:
        return None
    if found is not None:
        pages.print_document(answer.parts.document(found, finished.directory), console)
    return found


SWEEP = Pipeline(
    name="sweep",
    summary="Measures every point of a suite and reports on all of them.",
    own=(
        Parameter(
            "baseline", "", "A stored baseline or a run directory to compare with; empty for none."
        ),
        KEEP_DATA,
        Parameter(
            "enable_hlo_dump", False, "Whether XLA writes its HLO protos into the run directory."
        ),
        Parameter(
            "measure_limits",
            True,
            "Whether to measure the limits of machine and storage, once per run.",
        ),
        LOCK,
    ),
    add=add_to_sweep,
    conclude=conclude_sweep,
    paths=("baseline",),
)

REGRESSION = Pipeline(
    name="regression",
    summary="Says whether a candidate is slower than a baseline, and fails if it is.",
    details="Each point is measured in both arms within one step, so on one machine. Against a\n"
    "stored baseline, which was measured separately, it only warns below 2x.",
    suite="The suite file, word for word; with `arms`, unless they are given here or there is "
    "a stored baseline.",
    own=(
        Parameter(
            "arms",
            "",
            "An `arms` block, as YAML, for a suite that has none; `{}` compares it with itself.",
        ),
        Parameter(
            "baseline",
            "",
            "A stored baseline in place of arms, which only warns below 2x: a slower run is "
            "not captured, and the pipeline succeeds.",
        ),
        Parameter(
            "registry",
            "",
            "Where to capture a complete run with a good verdict; empty for nowhere.",
        ),
        Parameter("promote", False, "Whether the capture becomes the baseline of its points."),
        Parameter(
            "revision",
            "",
            "Name to file it under; by default the commit of the code under test, which an "
            "image without a repository does not know: without either it is not promoted.",
        ),
        Parameter(
            "force",
            False,
            "Whether it is promoted even if its code had uncommitted changes.",
        ),
        Parameter(
            "allow_inconclusive",
            False,
            "Whether INCONCLUSIVE leaves the pipeline successful, unless an arm lacks an "
            "operation.",
        ),
        KEEP_DATA,
        LOCK,
    ),
    add=add_regression,
    conclude=conclude_regression,
    measuring={"measure_limits": False},
    paths=("baseline", "registry"),
    takes_arms=True,
)

FRAMEWORK_COMPARISON = Pipeline(
    name="framework-comparison",
    summary="Compares how long two frameworks take to save and load the same data.",
    details="Both are measured within one step, in blocks of random order, so on one machine. The "
    "answer\nis a ratio with its interval; whichever is slower, the pipeline succeeds.",
    suite="The suite file, word for word; with `arms`, unless they are given here.",
    own=(
        Parameter(
            "arms",
            "",
            "An `arms` block, as YAML, for a suite that has none, such as `{baseline: {generator: "
            "pytorch_dcp}, candidate: {generator: save_restore}}`.",
        ),
        KEEP_DATA,
    ),
    add=add_comparison,
    conclude=conclude_comparison,
    measuring={"measure_limits": False},
    takes_arms=True,
)

ASYNC_STUDY = Pipeline(
    name="async-study",
    summary="Shows which share of the blocked time async saves avoid, by size of the model.",
    suite="The suite file, word for word; it sweeps `async_enabled: [false, true]` over "
    "checkpoints of several sizes.",
    own=(KEEP_DATA,),
    add=add_study,
    conclude=conclude_study,
    measuring={"measure_limits": False},
    pairs_saves=True,
)

CALIBRATION = Pipeline(
    name="calibration",
    summary="Measures the false-alarm rate and the noise of operations on the machine where it "
    "runs.",
    suite="The suite file, word for word, without arms.",
    own=(
        Parameter(
            "earlier", "", "A directory or pattern of earlier A/A runs to count in; empty for none."
        ),
        Parameter(
            "passport", "", "Where to write the noise passport; empty for only the artifact."
        ),
        KEEP_DATA,
    ),
    add=add_calibration,
    conclude=conclude_calibration,
    measuring={"measure_limits": False},
    arms="{}",
    paths=("earlier", "passport"),
)
