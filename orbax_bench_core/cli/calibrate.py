"""`orbax-bench calibrate`: false-positive rate of the gate on this machine, and its noise."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import Devices, NoLock, Quiet, results_console
from orbax_bench_core.cli.hosts import (
    ClusterFlags,
    HostWait,
    NoCluster,
    PortRangeOption,
    measure_suite,
)
from orbax_bench_core.cli.terminal import new_console
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import RunSettings


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
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the noise passport. `ab` takes it by --passport, or finds it at "
            "~/.cache/orbax-bench/passport.json.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Measure this machine's noise and its false-alarm rate.

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
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.execute import RunSettings

    given = list(places or ())
    if (suite is None) != (output_directory is None):
        raise UserError("--suite and --output-directory go together: what to measure, and where to")
    if suite is None or output_directory is None:
        if not given:
            raise UserError("nothing to read: give run directories, or measure some with --suite")
        raise typer.Exit(_read(given, save, as_json=as_json))
    directory = output_directory

    def measure(loaded: LoadedSuite, settings: RunSettings) -> int:
        from orbax_bench_core.cli.calibrate_run import CalibrationRun

        run = CalibrationRun(
            loaded,
            directory,
            minutes=minutes,
            settings=settings,
            lock=not no_lock,
            output=_progress(quiet=quiet),
        )
        stopped = run.run()
        return stopped or _read([*given, directory], save, as_json=as_json)

    measure_suite(
        suite,
        (),
        directory,
        flags=ClusterFlags(no_cluster=no_cluster, host_wait=host_wait, port_range=port_range),
        settings=RunSettings(devices=devices),
        measure=measure,
    )


def _read(places: Sequence[str], save: str | None, *, as_json: bool) -> int:
    """Shows what runs say of the gate and of the noise, and returns the exit code."""
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.analysis.noise import calibration_of

    found = calibration_of(places)
    code = exit_code(incomplete=bool(found.left_out))
    if save is not None:
        passports.save(found.passport, save)
    if as_json:
        plain = {
            "tests": [test.model_dump(mode="json") for test in found.tests],
            "passport": found.passport.model_dump(mode="json"),
            "left_out": found.left_out,
        }
        print(json.dumps(plain, indent=2))
        return code
    console = results_console()
    found.show(console)
    if save is not None:
        console.print(f"Passport: {save}", markup=False, highlight=False, soft_wrap=True)
    return code


def _progress(*, quiet: bool) -> Output:
    """Returns where progress is shown: on stderr, for standard output has the answer alone."""
    from orbax_bench_core.cli.output import Output

    return Output(console=new_console(file=sys.stderr), quiet=quiet)
