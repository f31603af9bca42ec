"""`step`: the steps of a pipeline as commands, for engines other than Kubeflow."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Annotated

import typer

from orbax_bench_core.cli import answer_steps
from orbax_bench_core.cli.arguments import AllowInconclusive, JUnit, Notify, SuiteFile
from orbax_bench_core.cli.hosts import HostWait, NoCluster
from orbax_bench_core.cli.step_outputs import OutputsFile, ResultFile, RunDirectory, give, text_of
from orbax_bench_core.exit_codes import Exit

app = typer.Typer(
    no_args_is_help=True,
    help="The steps of a pipeline, one by one: what the Kubeflow components do, for Airflow, Argo, "
    "cron and CI.\n\nThe last line of standard output is what the step returns, as JSON. The same "
    "step again does nothing twice.",
)


@app.command("plan-sweep")
def plan_sweep(
    suite: SuiteFile,
    output_directory: RunDirectory,
    arms: Annotated[
        str, typer.Option(help="An `arms` block, as YAML, for a suite that has none.")
    ] = "",
    processes: Annotated[
        int, typer.Option(min=0, help="Host processes of each point, where the suite names none.")
    ] = 0,
    points_per_step: Annotated[
        int,
        typer.Option(
            min=0, help="Points that one step measures; 0 for so many that it takes minutes."
        ),
    ] = 0,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Expand a suite into points and begin its run directory; returns what each step measures."""
    from orbax_bench_core.steps.pipeline import plan_sweep

    planned = plan_sweep(
        text_of(suite),
        output_directory,
        arms=arms,
        processes=processes,
        file=suite,
        points_per_step=points_per_step,
    )
    give(planned, result, outputs)


@app.command("generate-checkpoint")
def generate_checkpoint(
    suite: SuiteFile,
    fixture: Annotated[
        str | None,
        typer.Option(metavar="SUITE", help="A suite whose first checkpoint is made if missing."),
    ] = None,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Make the checkpoint that a suite loads, unless it is there; returns its path, or null."""
    from orbax_bench_core.steps.pipeline import generate_checkpoint

    given = "" if fixture is None else text_of(fixture)
    give(generate_checkpoint(text_of(suite), fixture=given), result, outputs)


@app.command("run-sweep-point")
def run_sweep_point(
    points: Annotated[
        list[str],
        typer.Argument(
            metavar="POINT...",
            help="Ids of points, as plan-sweep returned them, or @FILE that holds some: what "
            "--result has written does.",
        ),
    ],
    output_directory: RunDirectory,
    remove_repeated_dir: Annotated[
        bool, typer.Option("--remove-repeated-dir", help="Delete checkpoint data after a repeat.")
    ] = False,
    enable_hlo_dump: Annotated[
        bool, typer.Option("--enable-hlo-dump", help="Write XLA HLO protos to hlo_dump/.")
    ] = False,
    no_limits: Annotated[
        bool, typer.Option("--no-limits", help="Do not measure what the machine can do.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when a repeat failed.")
    ] = False,
    no_lock: Annotated[
        bool, typer.Option("--no-lock", help="Measure even while another run measures here.")
    ] = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    launcher: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Start hosts by this place of `orbax-bench launch --on`, measure on them, and "
            "wait; containers run the image of ORBAX_BENCH_IMAGE. By default it is measured here.",
        ),
    ] = "",
    tpu: Annotated[
        str, typer.Option(metavar="TYPE:TOPOLOGY", help="The TPU slice of those hosts.")
    ] = "",
    slices: Annotated[int, typer.Option(min=1, help="How many such slices.")] = 1,
    launcher_settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the launcher; repeatable."),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            metavar="PLATFORM[:KIND][:COUNT]",
            help="The devices that must be there, such as tpu:v5e:8, gpu:h100-80gb:8 or cpu; with "
            "others nothing is measured, and it exits with 2.",
        ),
    ] = "",
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Measure points in one step; returns "passed" or "failed" for each.

    Of a pair, blocks of both arms are measured until it has its verdict. Where a launcher has
    started the same line on several hosts, they measure together.
    """
    from orbax_bench_core.execute import CannotRecord, HostsMissing, RunSettings
    from orbax_bench_core.steps import PointFailed, point_hosts
    from orbax_bench_core.steps.pipeline import run_sweep_point

    if no_cluster:
        os.environ["ORBAX_BENCH_CLUSTER"] = "none"

    settings = RunSettings(remove_repeated_dir=remove_repeated_dir, hlo_dump=enable_hlo_dump)
    given = [text_of(point[1:]) if point.startswith("@") else point for point in points]
    try:
        found = run_sweep_point(
            given,
            output_directory,
            settings=settings,
            limits=not no_limits,
            lock=not no_lock,
            host_wait_s=host_wait,
            hosts=point_hosts(launcher, tpu, slices, launcher_settings),
            expect=expect,
        )
    except (PointFailed, CannotRecord, HostsMissing) as failure:
        print(f"failed: {failure}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None
    give(found, result, outputs)
    if strict and "failed" in found.value:
        raise typer.Exit(Exit.FAILED)


@app.command("aggregate")
def aggregate(
    output_directory: RunDirectory,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Write samples, summary, report and TensorBoard's files; returns what they lack.

    They are written from what is there. Where a step was lost, or points are not complete or have
    failed, it exits with 1 and names them.
    """
    from orbax_bench_core.steps.pipeline import aggregate

    found = aggregate(output_directory)
    for lacking in found.value:
        print(lacking, file=sys.stderr)
    give(found, result, outputs)
    if found.value:
        raise typer.Exit(Exit.FAILED)


@app.command("compare-baseline")
def compare_baseline(
    output_directory: RunDirectory,
    baseline: Annotated[
        str,
        typer.Option(help="A stored baseline or run directory; by default both arms of the run."),
    ] = "",
    notify: Notify = None,
    junit: JUnit = None,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Judge a run; returns REGRESSION, PASS or INCONCLUSIVE, and exits with 0 for each."""
    from orbax_bench_core.steps import Notifiers
    from orbax_bench_core.steps.pipeline import compare_baseline

    notifiers = Notifiers.of(notify, junit)
    give(
        compare_baseline(output_directory, baseline=baseline, notifiers=notifiers), result, outputs
    )


@app.command("publish-baseline")
def publish_baseline(
    output_directory: RunDirectory,
    registry: Annotated[str, typer.Argument(help="The registry: a folder or a gs:// prefix.")],
    arm: Annotated[str, typer.Option(help="Which side of a paired run.")] = "candidate",
    promote: Annotated[
        bool, typer.Option("--promote", help="Make it the baseline of its points.")
    ] = False,
    revision: Annotated[
        str, typer.Option(help="File it under this; by default the commit of the code under test.")
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Promote code with changes that no commit has.")
    ] = False,
    verdict: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="What compare-baseline returned; REGRESSION and INCONCLUSIVE are not captured.",
        ),
    ] = "",
    allow_inconclusive: Annotated[
        bool, typer.Option("--allow-inconclusive", help="Capture what is INCONCLUSIVE as well.")
    ] = False,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Capture a run in a registry of baselines; returns the id of the capture, or none."""
    from orbax_bench_core.steps.pipeline import publish_baseline

    found = publish_baseline(
        output_directory,
        registry,
        arm=arm,
        promote=promote,
        revision=revision,
        force=force,
        verdict=verdict,
        allow_inconclusive=allow_inconclusive,
    )
    give(found, result, outputs)


@app.command("enforce-verdict")
def enforce_verdict(
    verdict: Annotated[
        str,
        typer.Argument(help="The word that compare-baseline or soak returned; empty without any."),
    ] = "",
    verdicts: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="verdicts.json of the run, to say what regressed."),
    ] = None,
    lacking: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What `aggregate --result` wrote; 1 where anything is lacking."
        ),
    ] = None,
    allow_inconclusive: AllowInconclusive = False,
    notify: Notify = None,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Exit with 0 for PASS, 3 for REGRESSION or LEAK, 4 for INCONCLUSIVE that is not tolerated.

    Where something is lacking and nothing has regressed it is 1. A verdict on runs that were
    measured apart, as --verdicts tells, only warns below 2x; without --verdicts the word counts as
    it is.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.steps import Notifiers
    from orbax_bench_core.steps.pipeline import NotPassed, enforce_verdict

    if not verdict and lacking is None:
        raise UserError(
            "there is nothing to enforce: give the verdict that compare-baseline returned, or "
            "--lacking FILE"
        )
    # A page of a CI job has the verdict from the step that found it.
    told = notify is not None or verdicts is not None
    notifiers = dataclasses.replace(Notifiers.of(notify), page="") if told else None
    try:
        found = enforce_verdict(
            verdict,
            verdicts=verdicts,
            lacking=() if lacking is None else _lines(lacking),
            allow_inconclusive=allow_inconclusive,
            notifiers=notifiers,
        )
    except NotPassed as refused:
        print(refused, file=sys.stderr)
        raise typer.Exit(refused.code) from None
    give(found, result, outputs)


@app.command("finish")
def finish(
    output_directory: RunDirectory,
    suite: Annotated[
        str | None,
        typer.Option(metavar="SUITE", help="The suite, to say why nothing of it was planned."),
    ] = None,
    status: Annotated[
        str,
        typer.Option(
            metavar="WORD",
            help="How the other steps ended, where the engine says so: SUCCEEDED or another word.",
        ),
    ] = "",
    notify: Notify = None,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Write what a run lacks of its report from whatever is there; returns its state.

    It runs last, whatever became of the other steps, also where none of them ran. It exits with 0
    for every state: the other steps have failed the run.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.steps import Notifiers
    from orbax_bench_core.steps.pipeline import finish

    text = ""
    try:
        text = "" if suite is None else text_of(suite)
    except UserError as unreadable:  # plan-sweep failed for that, and this step still reports
        print(unreadable, file=sys.stderr)
    notifiers = Notifiers.of(notify)
    give(finish(output_directory, suite=text, status=status, notifiers=notifiers), result, outputs)


@app.command("calibrate")
def calibrate(
    runs: Annotated[
        list[str], typer.Argument(help="Run directories of A/A comparisons, or patterns.")
    ],
    passport: Annotated[str, typer.Option(metavar="FILE", help="Where the passport is written.")],
    report: Annotated[str, typer.Option(metavar="FILE", help="Where the text is written.")],
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Count how often identical arms were told apart, and write the noise passport."""
    from orbax_bench_core.steps.pipeline import calibrate

    give(calibrate(runs, passport=passport, report=report), result, outputs)


@app.command("study-async")
def study_async(
    output_directory: RunDirectory, result: ResultFile = None, outputs: OutputsFile = None
) -> None:
    """Set blocking saves beside saves in the background, for each size that a run has saved."""
    from orbax_bench_core.steps.pipeline import study_async

    give(study_async(output_directory), result, outputs)


app.command("best")(answer_steps.best)
app.command("inspect-checkpoint")(answer_steps.inspect_checkpoint)
app.command("plan-save")(answer_steps.plan_save)
app.command("soak")(answer_steps.soak)
app.command("recovery")(answer_steps.recovery)


def _lines(path: str) -> list[str]:
    """Returns the lines that a step returned and --result wrote, as a list of JSON.

    Raises:
        UserError: It cannot be read, or holds something else.
    """
    from orbax_bench_core.errors import Problem, UserError

    text = text_of(path)
    try:
        lines = json.loads(text)
    except (ValueError, RecursionError):
        lines = None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise UserError(
            Problem("expected a list of lines as JSON, as `aggregate --result` writes", file=path)
        )
    return lines
