"""`orbax-bench calibrate`: false-positive rate of the gate on this machine, and its noise."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import results_console


def calibrate(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Run directories, directories that hold some, or patterns such as 'aa/*'; local "
            "or gs://.",
        ),
    ],
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
    comparison will take.

    orbax-bench ab suite.yaml --output-directory aa/monday --aa

    orbax-bench calibrate aa --save ~/.cache/orbax-bench/passport.json

    Exit codes: 0; 1 files were left out, for they are not what their place says.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.analysis.noise import calibration_of

    found = calibration_of(places)
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
