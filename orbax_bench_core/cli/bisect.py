"""`orbax-bench bisect`: find the release that made an operation slower."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, PassportFile, SuiteFile
from orbax_bench_core.cli.hosts import MeasureFlags, measure_by, takes_measure_flags

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite


@takes_measure_flags(
    without=("local_directory", "override", "notify", "junit", "verbose", "log_format", "as_json")
)
def bisect(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    package: Annotated[
        str, typer.Option(metavar="NAME", help="The package whose releases are searched.")
    ],
    good: Annotated[str, typer.Option(metavar="VERSION", help="A release that is fast.")],
    bad: Annotated[str, typer.Option(metavar="VERSION", help="A later release that is slow.")],
    wheels: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of wheels of the package that no index has, such as nightly builds; "
            "where both have a version, the wheel is taken.",
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="What else to install in every environment, such as jax==0.10.2; repeatable.",
        ),
    ] = None,
    only_wheels: Annotated[
        bool, typer.Option("--only-wheels", help="Search the folder of wheels alone.")
    ] = False,
    passport: PassportFile = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Find the release that made something slower.

    Each release is compared with the good one in blocks of random order, as `orbax-bench ab` does,
    in an environment of its own. First the bad one: if it has not regressed there is nothing to
    find. Then halfway between, until two neighbours are left, which are compared with each other
    before one is named. Where verdicts leave several releases open, the answer is a range.

    orbax-bench bisect suite.yaml -o out --package orbax-checkpoint --good 0.11.32 --bad 0.12.8

    Of a suite with arms both sides are the candidate: its options and benchmark, and what its
    environment has beside the package. bisect.html shows the ratio by release and every step.

    Exit codes: 3 a release or a range with a REGRESSION was found, 0 the ends do not differ, 4 no
    clear verdict on them, 1 they could not be measured, 2 the suite or a release is invalid. The
    same command goes on from where it was stopped.
    """
    from orbax_bench_core.analysis import noise as passports

    known = passports.find(passport)

    def measure(loaded: LoadedSuite, directory: str, how: Measuring) -> int:
        from orbax_bench_core.cli.bisect_run import BisectRun
        from orbax_bench_core.steps.releases import find_releases, kept_requirements

        releases = find_releases(
            package,
            good,
            bad,
            wheels=None if wheels is None else Path(wheels),
            also=kept_requirements(loaded, package, also or ()),
            only_wheels=only_wheels,
        )
        return BisectRun(loaded, directory, package, releases, passport=known, how=how).run()

    measure_by(measure, suite, output_directory, flags, tells=False)
