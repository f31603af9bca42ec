"""`orbax-bench ab`: compare two arms of a suite and give a verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import (
    AllowInconclusive,
    OutputDirectory,
    PassportFile,
    SuiteFile,
)
from orbax_bench_core.cli.hosts import MeasureFlags, measure_suite, takes_measure_flags


@takes_measure_flags(without=("as_json",))
def ab(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            "-b",
            metavar="KEY=VALUE",
            help="What the baseline has different: an option of the benchmark, or environment=, "
            "generator=, processes=. For a suite without `arms`; repeatable.",
        ),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            "-c",
            metavar="KEY=VALUE",
            help="What the candidate has different, in the same way.",
        ),
    ] = None,
    same: Annotated[
        bool,
        typer.Option(
            "--aa",
            help="Compare the suite with itself, in several worker processes per arm, which must "
            "not give REGRESSION: a check of the machine, and food for `orbax-bench calibrate`.",
        ),
    ] = False,
    allow_inconclusive: AllowInconclusive = False,
    take_turns: Annotated[
        bool,
        typer.Option(
            "--take-turns",
            help="Run the workers of one arm at a time, to save memory. TPUs always do this.",
        ),
    ] = False,
    passport: PassportFile = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Compare two arms of a suite and give a verdict.

    It is REGRESSION, PASS or INCONCLUSIVE.

    Both arms run here in small blocks of random order, so that a machine that drifts or stalls
    slows both. After 10, 20, 40 and 60 operations per arm the times are looked at, and a clear
    answer ends it. Arms that cannot share a worker have a new one for each slot of a block, and
    looks from 16 operations on. The arms come from the suite's `arms` block or from the command
    line:

    orbax-bench ab suite.yaml -o results --candidate use_ocdbt=false

    Exit codes: 0 PASS, 1 nothing could be compared, 2 the suite is invalid, 3 REGRESSION,
    4 INCONCLUSIVE, 130 interrupted. The same command finishes what was interrupted.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.cli.arm_flags import FlaggedComparison

    known = passports.find(passport)
    measure_suite(
        suite,
        output_directory,
        flags,
        FlaggedComparison(arms=(baseline or [], candidate or []), same=same, passport=known),
        allow_inconclusive=allow_inconclusive,
        take_turns=take_turns,
        process_noise=known and passports.processes_of(known),
    )
