"""`orbax-bench calibrate`: false-positive rate of the gate on this machine, and its noise."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import Devices, NoLock, results_console


def calibrate(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, or patterns such as 'aa/*'; local "
            "or gs://.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Measure this suite against itself first, into --output-directory.",
        ),
    ] = None,
    output_directory: Annotated[
        str | None,
        typer.Option("--output-directory", "-o", metavar="DIR", help="Where --suite measures."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Time that --suite may take, about.")
    ] = 10.0,
    devices: Devices = None,
    no_lock: NoLock = False,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the noise passport. `ab` takes it by --passport, or finds it at "
            "~/.cache/orbax-bench/passport.json.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Check that the gate keeps its word here, and measure the noise.

    Of runs whose arms are the same (`orbax-bench ab --aa`) it counts how often the gate said
    REGRESSION, which it may in 1 % of them. Of all runs it takes the noise passport: how much
    operations of one kind of storage and size differ from one to the next, which tells how long a
    comparison will take; by how much worker processes differ, and by how much the ratio of two
    options does from worker to worker, with 95 % intervals. With a suite it measures first, at no
    tolerance, and says which bounds that bought.

    orbax-bench calibrate --suite suite.yaml -o aa --minutes 10

    orbax-bench ab suite.yaml --output-directory aa/monday --aa

    orbax-bench calibrate aa --save ~/.cache/orbax-bench/passport.json

    Exit codes: 0; 1 files were left out, for they are not what their place says.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.analysis.noise import calibration_of
    from orbax_bench_core.config import UserError

    given = list(places or ())
    if (suite is None) != (output_directory is None):
        raise UserError("--suite and --output-directory go together: what to measure, and where to")
    if suite is not None and output_directory is not None:
        _measure(suite, output_directory, minutes=minutes, devices=devices, lock=not no_lock)
        given.append(output_directory)
    if not given:
        raise UserError("nothing to read: give run directories, or measure some with --suite")
    found = calibration_of(given)
    if save is not None:
        passports.save(found.passport, save)
    if as_json:
        plain = {
            "tests": [test.model_dump(mode="json") for test in found.tests],
            "passport": found.passport.model_dump(mode="json"),
            "left_out": found.left_out,
        }
        print(json.dumps(plain, indent=2))
        raise typer.Exit(1 if found.left_out else 0)
    console = results_console()
    found.show(console)
    if save is not None:
        console.print(f"Passport: {save}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1 if found.left_out else 0)


def _measure(
    suite: str, directory: str, *, minutes: float, devices: int | None, lock: bool
) -> None:
    """Makes runs of a suite against itself, with progress on stderr."""
    from rich.console import Console

    from orbax_bench_core.cli.calibrate_run import CalibrationRun
    from orbax_bench_core.cli.measurement import Interrupted
    from orbax_bench_core.config import load_suite

    console = Console(file=sys.stderr)
    run = CalibrationRun(
        load_suite(suite),
        directory,
        minutes=minutes,
        devices=devices,
        lock=lock,
        console=console,
    )
    try:
        run.run()
    except Interrupted as stop:
        console.print(f"{stop}; what is done is kept.", markup=False, highlight=False)
        raise typer.Exit(stop.code) from None
