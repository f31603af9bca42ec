"""`orbax-bench recovery`: training that is killed, and the time until it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import (
    Devices,
    LocalDirectory,
    LogFormat,
    NoLock,
    Override,
    Verbose,
)

if TYPE_CHECKING:
    from orbax_bench_core.analysis.recovery import PhaseName


def recovery(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to drill or, without --output-directory, the run directory of drills to "
            "show anew.",
        ),
    ],
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="The run directory; the same command goes on with what it holds.",
        ),
    ] = None,
    add_notice: Annotated[
        float,
        typer.Option(
            "--add-notice",
            metavar="S",
            min=0.0,
            help="Seconds until your platform notices a failure, beyond what is measured here.",
        ),
    ] = 0.0,
    add_start: Annotated[
        float,
        typer.Option(
            "--add-start",
            metavar="S",
            min=0.0,
            help="Seconds to replace a node, to wait for a scheduler and to start accelerators.",
        ),
    ] = 0.0,
    allow_inconclusive: Annotated[
        bool,
        typer.Option("--allow-inconclusive", help="With arms: exit with 0 for INCONCLUSIVE too."),
    ] = False,
    local_directory: LocalDirectory = None,
    override: Override = None,
    devices: Devices = None,
    no_lock: NoLock = False,
    verbose: Verbose = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Kill a training job again and again, and find out how fast it is back.

    Every repeat trains in fresh processes and saves at an interval, is killed with SIGKILL at a
    drawn step, and goes on in new processes from the last committed save. Shown are the time to
    notice, to start, to restore and to the first step, the steps lost, the saves left uncommitted,
    and how many drills came back with the state of a job that was never killed. A suite with arms
    ends in a verdict on the whole recovery. It writes recovery.html, recovery.md and recovery.json
    into the run directory, beside the report of the run. Checkpoints are deleted.

    The suite has the benchmark training_job. What one machine cannot show is given in seconds:

    orbax-bench recovery examples/recovery.yaml -o /tmp/recovery

    orbax-bench recovery /tmp/recovery --add-notice 30 --add-start 180

    Exit codes: 0 every drill came back, 1 some did not, 2 the suite is invalid, 130 interrupted;
    with arms 0 PASS, 3 REGRESSION, 4 INCONCLUSIVE.
    """
    from orbax_bench_core.config import UserError
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps import load_drilled

    added: dict[PhaseName, float] = {"notice": add_notice, "start": add_start}
    if output_directory is None:
        if override:
            raise UserError("--override changes a suite that is measured: give --output-directory")
        _show_anew(place, added, as_json=as_json)
        return
    loaded = load_drilled(place, override or [])

    from orbax_bench_core.cli.measurement import Measurement, Output

    output = Output.to_stdout(LogFormat.TEXT, verbose=verbose)
    output.console.stderr = as_json
    measurement = Measurement(
        loaded,
        output_directory,
        settings=RunSettings(
            local_directory=local_directory, remove_repeated_dir=True, devices=devices, drill=True
        ),
        output=output,
        lock=not no_lock,
    )
    code = measurement.drill(added, allow_inconclusive=allow_inconclusive, as_json=as_json)
    raise typer.Exit(code)


def _show_anew(directory: str, added: dict[PhaseName, float], *, as_json: bool) -> None:
    from orbax_bench_core.cli.measurement import show_recovery
    from orbax_bench_core.config import UserError
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import publish_recovery

    run = RunDirectory(directory)
    if not run.exists():
        raise UserError(
            f"{directory} is no run directory. To drill a suite, say where: "
            f"`orbax-bench recovery {directory} -o DIR`"
        )
    try:
        found = publish_recovery(run, added)
    except OSError as failure:
        raise UserError(f"cannot write into {run.root}: {failure}") from None
    show_recovery(found, str(run.root), as_json=as_json)
