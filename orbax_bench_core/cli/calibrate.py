"""`orbax-bench calibrate`: false-positive rate of the gate on this machine, and its noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import output_option
from orbax_bench_core.cli.hosts import MeasureFlags, measure_by, takes_measure_flags
from orbax_bench_core.cli.results import results_console
from orbax_bench_core.cli.terminal import print_plain
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite


@takes_measure_flags(
    without=("local_directory", "override", "notify", "junit", "verbose", "log_format")
)
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
    output_directory: Annotated[str | None, output_option("Where --suite measures.", "DIR")] = None,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Approximate time that --suite may take.")
    ] = 10.0,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the noise passport. `ab` takes it by --passport, or finds it at "
            "~/.cache/orbax-bench/passport.json.",
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Measure this machine's noise and its false-alarm rate.

    It counts how often the gate said REGRESSION of runs with equal arms (`orbax-bench ab --aa`),
    which is allowed in 2.5 % of them. From all runs it makes the noise passport, with 95 %
    intervals: how much operations of one kind of storage and size vary, which predicts how long a
    comparison will take; how much worker processes differ; and how much the ratio of two options
    varies between workers. A table of power shows how likely each verdict is at this noise, by the
    true slow-down, under the rules of these runs. With a suite it measures first, with a tolerance
    of zero, and says which bounds that gave.

    orbax-bench calibrate --suite suite.yaml -o aa --minutes 10

    orbax-bench ab suite.yaml --output-directory aa/monday --aa

    orbax-bench calibrate aa --save ~/.cache/orbax-bench/passport.json

    Exit codes: 0; 1 files were left out, because their content does not match their path.
    """
    from orbax_bench_core.errors import UserError

    given = list(places or ())
    if (suite is None) != (output_directory is None):
        raise UserError("--suite and --output-directory go together: what to measure, and where to")
    if suite is None or output_directory is None:
        if not given:
            raise UserError("nothing to read: give run directories, or measure some with --suite")
        raise typer.Exit(_read(given, save, as_json=flags.as_json))

    def measure(loaded: LoadedSuite, directory: str, how: Measuring) -> int:
        from orbax_bench_core.cli.series import make_runs

        stopped = make_runs(loaded, directory, minutes, how)
        return stopped or _read([*given, directory], save, as_json=flags.as_json)

    measure_by(measure, suite, output_directory, flags, tells=False, stderr=True)


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
            "power": found.power,
            "left_out": found.left_out,
        }
        print(json.dumps(plain, indent=2))
        return code
    console = results_console()
    found.show(console)
    if save is not None:
        print_plain(console, f"Passport: {save}")
    return code
