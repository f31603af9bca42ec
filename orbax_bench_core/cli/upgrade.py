"""`orbax-bench upgrade`: a verdict on a release of Orbax, without writing a suite."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import AllowInconclusive, PassportFile
from orbax_bench_core.cli.hosts import MeasureFlags, measure_suite, takes_measure_flags


@takes_measure_flags(without=("local_directory", "as_json"))
def upgrade(
    old: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="VERSION", help="The release in use; by default the installed one."
        ),
    ] = None,
    new: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="VERSION", help="The release to judge; by default the newest one."
        ),
    ] = None,
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            help="The run directory; by default upgrade-FROM-TO in this folder.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What to measure; by default saves and loads of 12 MiB of arrays."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="What else both environments have, such as jax==0.10.2; repeatable.",
        ),
    ] = None,
    allow_inconclusive: AllowInconclusive = False,
    passport: PassportFile = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Give a verdict on a release of Orbax, against another one.

    Each release has an environment of its own, which is made once, by uv, and kept. Everything else
    in it, JAX too, is as it is here. The releases are compared as `orbax-bench ab` compares arms:
    REGRESSION, PASS or INCONCLUSIVE. It says before it begins how long that takes.

    orbax-bench upgrade --from 0.11.32 --to 0.12.8

    Exit codes: 0 PASS, 1 nothing could be compared, 2 there is no such release or the suite is
    invalid, 3 REGRESSION, 4 INCONCLUSIVE, 130 interrupted. The same command finishes what was
    interrupted.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.steps.releases import Upgrading
    from orbax_bench_core.suite_files import UPGRADE_SUITE

    known = passports.find(passport)
    measure_suite(
        suite or str(UPGRADE_SUITE),
        output_directory,
        flags,
        Upgrading(old=old, new=new, also=also or (), own=suite is not None, passport=known),
        allow_inconclusive=allow_inconclusive,
        process_noise=known and passports.processes_of(known),
    )
