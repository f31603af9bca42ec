"""`orbax-bench run`: run a suite on this machine, or on all hosts of a cluster."""

from typing import Annotated

import typer

from orbax_bench_core.cli import arguments
from orbax_bench_core.cli.hosts import measure_suite


@arguments.takes_measure_flags(without=("keep_data", "junit", "as_json"))
def run(
    suite: arguments.SuiteFile,
    output_directory: arguments.OutputDirectory,
    enable_hlo_dump: Annotated[
        bool,
        typer.Option(
            "--enable-hlo-dump", "--enable_hlo_dump", help="Write XLA HLO protos to hlo_dump/."
        ),
    ] = False,
    keep_data: Annotated[
        bool,
        typer.Option(
            "--keep-data/--remove-repeated-dir",
            "--keep_data/--remove_repeated_dir",
            help=arguments.KEEP_DATA,
        ),
    ] = False,
    baseline_path: Annotated[
        str | None,
        typer.Option(
            "--baseline-path",
            "--baseline_path",
            help="Compare with this stored baseline or run directory.",
        ),
    ] = None,
    baseline_capture_path: Annotated[
        str | None,
        typer.Option(
            "--baseline-capture-path",
            "--baseline_capture_path",
            help="Store this run as a baseline here, one file per point.",
        ),
    ] = None,
    metrics: arguments.Metrics = "changed",
    no_limits: Annotated[
        bool,
        typer.Option(
            "--no-limits",
            help="Do not measure the limits of this machine and storage; otherwise each "
            "operation is shown as a share of them.",
        ),
    ] = False,
    new_limits: Annotated[
        bool,
        typer.Option(
            "--new-limits",
            help="Measure the limits again, even if an earlier run's are kept and a short "
            "check agrees with them.",
        ),
    ] = False,
    *,
    flags: arguments.MeasureFlags,
) -> None:
    """Run a suite and show what it found.

    Killing it loses no finished repeat: the same command continues from there.

    On several hosts, start the same command on each with JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID, or by a launcher that sets its own variables: process 0
    runs the suite on all of them.

    Exit codes: 0 every repeat passed, 1 some failed, 2 the suite is invalid, 130 interrupted.
    """
    from orbax_bench_core.steps import Sweep

    sweep = Sweep(
        limits=not no_limits,
        compare=baseline_path,
        capture=baseline_capture_path,
        metrics=metrics,
    )
    measure_suite(
        suite,
        output_directory,
        flags,
        sweep,
        keep_data=keep_data,
        hlo_dump=enable_hlo_dump,
        new_limits=new_limits,
    )
