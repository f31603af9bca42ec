"""Arguments that several sub-commands share."""

from __future__ import annotations

from typing import Annotated

import typer

SuiteFile = Annotated[
    str, typer.Argument(metavar="SUITE", help="The suite file: YAML, a local path or gs://.")
]
OutputDirectory = Annotated[
    str,
    typer.Option(
        "--output-directory",
        "--output_directory",
        "-o",
        help="The run directory, local or gs://. If it holds an unfinished run of the same suite, "
        "that run is finished.",
    ),
]
