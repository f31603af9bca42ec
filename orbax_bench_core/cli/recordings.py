"""Commands for real training jobs: `record` and `diagnose`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orbax_bench_core.cli import terminal
from orbax_bench_core.cli.arguments import AsJson, Html, ShowDetails, output_option
from orbax_bench_core.exit_codes import exit_code


def _option(metavar: str, about: str) -> Any:
    return typer.Option(metavar=metavar, help=about)


def record(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="What trains.")],
    output_directory: Annotated[
        str,
        output_option("Where the recording goes, local or gs://; the same on all hosts.", "DIR"),
    ],
    openmetrics: Annotated[
        str | None, _option("DIR", "Keep DIR/orbax_<host>.prom for a node exporter.")
    ] = None,
) -> None:
    """Run a training job, and record what its checkpoints cost.

    The job needs no change: JAX and Orbax are hooked when it imports them. It keeps its process,
    its exit code and its signals. Processes that it starts, such as data loaders, leave nothing.
    Training images need no more than `pip install --no-deps orbax-bench`.

    orbax-bench record -o recording -- python train.py --steps 1000

    orbax-bench diagnose recording

    Exit codes: those of the job; 2 it cannot be started.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.recorder import CannotLaunch, launch

    try:
        launch(output_directory, command, openmetrics)
    except CannotLaunch as error:
        raise UserError(str(error)) from None


def diagnose(
    recording: Annotated[
        str,
        typer.Argument(
            metavar="DIR|LOG",
            help="A recording, also of a job that still runs; or a log with lines of Orbax, or of "
            "ml-goodput-measurement.",
        ),
    ],
    mtbf: Annotated[
        str | None, _option("DURATION", "Mean time between failures; by default as recorded.")
    ] = None,
    suite: Annotated[
        str | None, _option("FILE", "Write a suite that saves the job's checkpoint.")
    ] = None,
    as_run: Annotated[
        str | None, _option("DIR", "Write the saves as a run, for report, history and compare.")
    ] = None,
    html: Html = None,
    details: ShowDetails = False,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with the checkpoints of a training job.

    It looks for saves that failed or never committed, stalls, memory that is kept of each save, a
    slow host, waiting for the previous save, and steps that are slower next to one. The cause that
    matters most comes first, then what saves cost, and how often to save.

    orbax-bench diagnose recording

    orbax-bench diagnose train.log

    orbax-bench diagnose recording --suite job.yaml --mtbf 4h

    orbax-bench diagnose recording --as-run monday

    Exit codes: 0 nothing is wrong; 1 something is; 2 there is no recording and no log.
    """
    from orbax_bench_core.analysis.recording import diagnosis_document
    from orbax_bench_core.files import place, write_atomically
    from orbax_bench_core.plan.goodput import seconds_of
    from orbax_bench_core.recordings import diagnose as diagnosis_of
    from orbax_bench_core.recordings import read_job, suite_like, write_run

    job = read_job(recording)
    found = diagnosis_of(job, mtbf_s=None if mtbf is None else seconds_of(mtbf, "--mtbf"))
    if suite is not None:
        write_atomically(place(suite), suite_like(job, suite).text.encode())
        found = found.model_copy(update={"suite": suite})
    if as_run is not None:
        from orbax_bench_core.publishing import publish
        from orbax_bench_core.records import RunDirectory

        directory = RunDirectory(as_run)
        write_run(job, suite_like(job), directory)
        publish(directory)
    document = diagnosis_document(found)
    terminal.write_page(document, html)
    terminal.show_answer(found, document, html, as_json=as_json, details=details)
    raise typer.Exit(exit_code(found.outcome))
