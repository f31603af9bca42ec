"""Steps of a pipeline that answer a question: options, plan, checkpoint, leaks, recovery."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbax_bench_core.cli.arguments import NoLock, SuiteFile
from orbax_bench_core.cli.step_outputs import OutputsFile, ResultFile, RunDirectory, give, text_of
from orbax_bench_core.exit_codes import Exit

if TYPE_CHECKING:
    from orbax_bench_core.steps.pipeline import Files, Outputs

_AnswerFile = Annotated[
    str, typer.Option("--answer", metavar="FILE", help="Write all numbers here, as JSON.")
]
_SummaryFile = Annotated[
    str, typer.Option("--summary", metavar="FILE", help="Write what people read, as Markdown.")
]
_ReportFile = Annotated[
    str, typer.Option("--report", metavar="FILE", help="Write it as a page with figures.")
]


def best(
    output_directory: RunDirectory,
    goal: Annotated[
        str, typer.Option(metavar="GOAL", help="What to make small, as `best --goal` takes it.")
    ] = "",
    peak_memory: Annotated[
        str,
        typer.Option(
            "--peak-memory", metavar="SIZE", help="Most host memory of a point, such as 8GiB."
        ),
    ] = "",
    answer: _AnswerFile = "",
    summary: _SummaryFile = "",
    report: _ReportFile = "",
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Choose the options of a sweep; returns the id of the best point of each case.

    Of a case of which no point can be recommended the id is empty, and it exits with 1.
    """
    from orbax_bench_core.cli.arguments import parse_size
    from orbax_bench_core.steps.pipeline import best

    found = best(
        output_directory,
        goal=goal,
        peak_memory_bytes=parse_size(peak_memory, "--peak-memory") if peak_memory else 0,
        files=_files(answer, summary, report),
    )
    give(found, result, outputs)
    if not all(found.value):
        raise typer.Exit(Exit.FAILED)


def inspect_checkpoint(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="Its root or one item; local or gs://.")
    ],
    mesh: Annotated[
        str, typer.Option(metavar="AXIS=SIZE,...", help="The mesh that it is loaded onto.")
    ] = "",
    devices_per_host: Annotated[
        int, typer.Option("--devices-per-host", min=0, help="Devices of one process there.")
    ] = 0,
    restore_concurrent_gb: Annotated[
        float,
        typer.Option("--restore-concurrent-gb", min=0.0, help="Most GiB in flight; 0 for any."),
    ] = 0.0,
    answer: _AnswerFile = "",
    summary: _SummaryFile = "",
    report: _ReportFile = "",
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Look at a checkpoint without loading it; returns what is wrong with it, as a list.

    It exits with 1 where something is: a save that has not finished, or files that are missing.
    """
    from orbax_bench_core.steps.pipeline import inspect_checkpoint

    found = inspect_checkpoint(
        checkpoint,
        mesh=mesh,
        devices_per_host=devices_per_host,
        restore_concurrent_gb=restore_concurrent_gb,
        files=_files(answer, summary, report),
    )
    _give_wrong(found, result, outputs)


def plan_save(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A suite file, a file with a spec, a preset, a Flax NNX factory or a checkpoint.",
        ),
    ],
    mesh: Annotated[
        str, typer.Option(metavar="AXIS=SIZE,...", help="The mesh that is saved from.")
    ] = "",
    devices_per_host: Annotated[
        int, typer.Option("--devices-per-host", min=0, help="Devices of one process there.")
    ] = 0,
    onto: Annotated[
        str, typer.Option(metavar="AXIS=SIZE,...", help="The mesh that is loaded onto.")
    ] = "",
    onto_devices_per_host: Annotated[
        int, typer.Option("--onto-devices-per-host", min=0, help="Devices of one process of that.")
    ] = 0,
    options: Annotated[
        str,
        typer.Option(
            metavar="YAML", help="Options of the save by name, such as '{use_ocdbt: false}'."
        ),
    ] = "",
    run: Annotated[
        str, typer.Option(metavar="DIR", help="A run whose limits say what the storage can.")
    ] = "",
    answer: _AnswerFile = "",
    summary: _SummaryFile = "",
    report: _ReportFile = "",
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Plan a save and the load of it, without a run; returns what will fail, as a list.

    It exits with 1 where something will.
    """
    from orbax_bench_core.steps.pipeline import plan_save

    found = plan_save(
        source,
        mesh=mesh,
        devices_per_host=devices_per_host,
        onto=onto,
        onto_devices_per_host=onto_devices_per_host,
        options=options,
        run=run,
        files=_files(answer, summary, report),
    )
    _give_wrong(found, result, outputs)


def soak(
    suite: SuiteFile,
    output_directory: RunDirectory,
    saves: Annotated[int, typer.Option(metavar="N", help="End after N saves of a process.")] = 0,
    hours: Annotated[
        float, typer.Option(metavar="T", help="End after T hours of a process, instead.")
    ] = 0.0,
    limit: Annotated[
        float, typer.Option(metavar="MIB", min=0.0, help="MiB that may be kept of each save.")
    ] = 0.1,
    no_lock: NoLock = False,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Save hundreds of times in one process; returns LEAK, PASS or INCONCLUSIVE, and exits with 0.

    enforce-verdict makes an exit code of the word.
    """
    from orbax_bench_core.execute import CannotRecord, RunSettings
    from orbax_bench_core.steps.pipeline import soak

    try:
        found = soak(
            text_of(suite),
            output_directory,
            saves=saves,
            hours=hours,
            limit_mib=limit,
            file=suite,
            settings=RunSettings(),
            say=_say,
            lock=not no_lock,
        )
    except CannotRecord as failure:
        raise _failed(failure) from None
    give(found, result, outputs)


def recovery(
    suite: SuiteFile,
    output_directory: RunDirectory,
    add_notice: Annotated[
        float, typer.Option("--add-notice", metavar="S", min=0.0, help="Seconds to notice.")
    ] = 0.0,
    add_start: Annotated[
        float, typer.Option("--add-start", metavar="S", min=0.0, help="Seconds to get machines.")
    ] = 0.0,
    no_lock: NoLock = False,
    result: ResultFile = None,
    outputs: OutputsFile = None,
) -> None:
    """Kill a training job again and again; returns what did not come back, as a list.

    It exits with 1 where something did not. With arms, compare-baseline returns the verdict.
    """
    from orbax_bench_core.execute import CannotRecord, RunSettings
    from orbax_bench_core.steps.pipeline import recovery

    try:
        found = recovery(
            text_of(suite),
            output_directory,
            add_notice=add_notice,
            add_start=add_start,
            file=suite,
            settings=RunSettings(),
            say=_say,
            lock=not no_lock,
        )
    except CannotRecord as failure:
        raise _failed(failure) from None
    _give_wrong(found, result, outputs)


def _files(answer: str, summary: str, report: str) -> Files:
    from orbax_bench_core.steps.pipeline import Files

    return Files(answer=answer, summary=summary, report=report)


def _give_wrong(found: Outputs[Any], result: str | None, outputs: str | None) -> None:
    """Gives a list of what is wrong, and exits with 1 where it is not empty."""
    for line in found.value:
        print(line, file=sys.stderr)
    give(found, result, outputs)
    if found.value:
        raise typer.Exit(Exit.FAILED)


def _failed(failure: Exception) -> typer.Exit:
    print(f"failed: {failure}", file=sys.stderr)
    return typer.Exit(Exit.FAILED)


def _say(line: str) -> None:
    from orbax_bench_core.steps import SAID

    print(f"{SAID}{line}", flush=True)
