"""`orbax-bench recovery`: training that is killed, and the time until it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import refuse_override
from orbax_bench_core.cli.hosts import MeasureFlags, measure_suite, takes_measure_flags


@takes_measure_flags(without=("junit", "log_format"))
def recovery(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to drill or, without --output-directory, the run directory of drills to "
            "show again.",
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
    *,
    flags: MeasureFlags,
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
    from orbax_bench_core.errors import check_amounts, command
    from orbax_bench_core.steps import Drills

    check_amounts(**{"--add-notice": add_notice, "--add-start": add_start})
    drills = Drills(added={"notice": add_notice, "start": add_start})
    if output_directory is None:
        from orbax_bench_core.cli.measurement import conclude_again

        refuse_override(flags.override, flags.notify)
        code = conclude_again(
            drills.conclude,
            place,
            otherwise=f"To drill a suite, say where: `{command('recovery', place, '-o', 'DIR')}`",
            as_json=flags.as_json,
            allow_inconclusive=allow_inconclusive,
        )
        raise typer.Exit(code)
    measure_suite(place, output_directory, flags, drills, allow_inconclusive=allow_inconclusive)
