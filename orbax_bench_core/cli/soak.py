"""`orbax-bench soak`: hundreds of saves in one process, and what it keeps of each."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import refuse_override
from orbax_bench_core.cli.hosts import MeasureFlags, measure_suite, takes_measure_flags


@takes_measure_flags(without=("junit", "log_format"))
def soak(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to soak or, without --saves and --hours, the run directory of a soak to "
            "judge again.",
        ),
    ],
    saves: Annotated[
        int | None,
        typer.Option("--saves", metavar="N", help="End after so many saves of one process."),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option("--hours", metavar="T", help="End after so many hours of one process."),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="MIB",
            min=0.0,
            help="Memory that a process may keep of each save, in MiB.",
        ),
    ] = 0.1,
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="The run directory, local or gs://; the same command goes on with what it holds.",
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Save hundreds of times in one process, and find out what it keeps of each save.

    It repeats a suite until one process has made N saves, or has measured for T hours, and reads
    the memory of the process, of its device and of its control group, its file descriptors and its
    threads after each. The growth per save comes with its 95 % interval: LEAK when it lies above
    --limit, PASS when it lies below, for all saves and for the second half of them alone;
    INCONCLUSIVE otherwise, with the number of saves that would tell. It writes soak.html, soak.md
    and soak.json into the run directory, beside the report of the run. Checkpoints are deleted.

    A stopped soak loses nothing that has finished, but its process is gone: the same command goes
    on with a new one, and judges the longest.

    orbax-bench soak examples/soak.yaml --saves 200 -o /tmp/soak

    orbax-bench soak /tmp/soak --limit 0.01

    Exit codes: 0 PASS, 3 LEAK, 4 INCONCLUSIVE, 1 a repeat failed, 2 the suite is invalid, 130
    interrupted.
    """
    from orbax_bench_core.errors import UserError, check_amounts, command
    from orbax_bench_core.steps import SoakGoal, Soaking

    check_amounts(**{"--limit": limit})
    if saves is None and hours is None and output_directory is None:
        from orbax_bench_core.cli.measurement import conclude_again

        refuse_override(flags.override, flags.notify)
        example = command("soak", place, "--saves", 200, "-o", "DIR")
        code = conclude_again(
            Soaking(limit_mib=limit).conclude,
            place,
            otherwise=f"To soak a suite, say for how long and where: `{example}`",
            as_json=flags.as_json,
        )
        raise typer.Exit(code)
    goal = SoakGoal(saves=saves, hours=hours)
    if output_directory is None:
        raise UserError("a soak is measured in a run directory: give --output-directory DIR")
    soaking = Soaking(goal=goal, limit_mib=limit)
    measure_suite(place, output_directory, flags, soaking, give_up=False)
