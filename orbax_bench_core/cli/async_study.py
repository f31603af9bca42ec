"""`orbax-bench async-study`: blocked time saved by background saves, by the size of the model."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import refuse_override
from orbax_bench_core.cli.hosts import MeasureFlags, measure_suite, takes_measure_flags


@takes_measure_flags(without=("local_directory", "notify", "junit", "verbose", "log_format"))
def async_study(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|SUITE",
            help="A run directory or, with --output-directory, a suite to measure first.",
        ),
    ],
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="Where a suite is measured; on several hosts all of them must reach it.",
        ),
    ] = None,
    *,
    flags: MeasureFlags,
) -> None:
    """Show what saving in the background saves, by the size of the model.

    It pairs the points of a run that differ only in `async_enabled`, and shows for each size how
    long training is blocked, how long the whole save takes, and the share of the blocked time that
    is saved, beside what the Orbax documentation says of 300M, 8B and 340B parameters. It writes
    async_study.html, async_study.md and async_study.json into the run directory.

    A suite for it sweeps `async_enabled: [false, true]` over checkpoints of several sizes;
    examples/async_study.yaml is one. It is measured as `orbax-bench run` does, on all hosts where a
    launcher starts this on several, and its checkpoints are deleted:

    orbax-bench async-study examples/async_study.yaml -o /tmp/async

    orbax-bench async-study /tmp/async
    """
    from orbax_bench_core.errors import command
    from orbax_bench_core.steps import Study, study

    if output_directory is None:
        from orbax_bench_core.cli.measurement import conclude_again

        refuse_override(flags.override)
        example = command("async-study", place, "-o", "DIR")
        conclude_again(
            study,
            place,
            otherwise=f"To measure a suite, say where: `{example}`",
            as_json=flags.as_json,
        )
        return
    measure_suite(place, output_directory, flags, Study(), tells=False)
