"""`orbax-bench bisect`: find the release that made an operation slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import (
    Devices,
    NoLock,
    OutputDirectory,
    PassportFile,
    Quiet,
    SuiteFile,
)
from orbax_bench_core.cli.hosts import (
    ClusterFlags,
    HostWait,
    NoCluster,
    PortRangeOption,
    measure_suite,
)
from orbax_bench_core.cli.terminal import new_console

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import RunSettings


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
    devices: Devices = None,
    no_lock: NoLock = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    quiet: Quiet = False,
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
    from orbax_bench_core.cli.bisect_run import BisectRun
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.execute import RunSettings

    known = passports.find(passport)

    def measure(loaded: LoadedSuite, settings: RunSettings) -> int:
        run = BisectRun(
            loaded,
            output_directory,
            package=package,
            good=good,
            bad=bad,
            wheels=wheels,
            also=also or (),
            only_wheels=only_wheels,
            settings=settings,
            lock=not no_lock,
            passport=known,
            output=Output(console=new_console(), quiet=quiet),
        )
        return run.run()

    measure_suite(
        suite,
        (),
        output_directory,
        flags=ClusterFlags(no_cluster=no_cluster, host_wait=host_wait, port_range=port_range),
        settings=RunSettings(devices=devices),
        measure=measure,
    )
