"""`orbax-bench bisect`: find the release that made an operation slower."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import Devices, NoLock, OutputDirectory, SuiteFile


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
    devices: Devices = None,
    no_lock: NoLock = False,
) -> None:
    """Find the release that made something slower.

    Each release is compared with the good one in blocks of random order, as `orbax-bench ab` does,
    in an environment of its own. First the bad one: if it has not regressed there is nothing to
    find. Then halfway between, until two neighbours are left.

    orbax-bench bisect suite.yaml -o out --package orbax-checkpoint --good 0.11.32 --bad 0.12.8

    Exit codes: 0 found, 1 a release that had to be measured failed, 2 the suite or a release is
    invalid, 4 no regression between the two, or no clear one. The same command goes on from where
    it was stopped.
    """
    from rich.console import Console

    from orbax_bench_core.cli.bisect_run import BisectRun
    from orbax_bench_core.config import load_suite

    run = BisectRun(
        load_suite(suite),
        output_directory,
        package=package,
        good=good,
        bad=bad,
        wheels=wheels,
        also=also or (),
        only_wheels=only_wheels,
        devices=devices,
        lock=not no_lock,
        console=Console(),
    )
    raise typer.Exit(run.run())
