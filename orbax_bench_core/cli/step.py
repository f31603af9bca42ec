"""`orbax-bench step`: one step of a run that was planned, for pipelines and launchers."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, Final

import typer

from orbax_bench_core.cli.arguments import NoLock, OutputDirectory
from orbax_bench_core.cli.hosts import HostWait, NoCluster

_EXIT_FAILED: Final = 1
_EXIT_INTERRUPTED: Final = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run one step of a run that was planned, as pipelines and launchers do.",
)


@app.callback()
def _step() -> None:
    """Run one step of a run that was planned, as pipelines and launchers do."""


@app.command("run-sweep-point")
def run_sweep_point(
    point: Annotated[
        str, typer.Argument(metavar="POINT", help="Id of a point of the run, or the point as JSON.")
    ],
    output_directory: OutputDirectory,
    remove_repeated_dir: Annotated[
        bool,
        typer.Option("--remove-repeated-dir", help="Delete checkpoint data after each repeat."),
    ] = False,
    enable_hlo_dump: Annotated[
        bool, typer.Option("--enable-hlo-dump", help="Write XLA HLO protos to hlo_dump/.")
    ] = False,
    no_limits: Annotated[
        bool,
        typer.Option("--no-limits", help="Do not measure what the machine and storage can do."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when a repeat failed.")
    ] = False,
    no_lock: NoLock = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
) -> None:
    """Measure one point of a run, on this host or, by a launcher, on several together.

    The run directory is that of a run that plan-sweep or another command has begun. What is
    recorded already is not measured again.

    Exit codes: 0 the point is measured, also when repeats failed; 1 it could not be, or a repeat
    failed under --strict; 2 something given is wrong; 130 interrupted.
    """
    from orbax_bench_core.execute import CannotRecord, HostsMissing, RunSettings
    from orbax_bench_core.steps import PointFailed, entry_of_run, run_point

    if no_cluster:
        os.environ["ORBAX_BENCH_CLUSTER"] = "none"
    # Whoever ends this process in an orderly way, its workers end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run_point(
            entry_of_run(point, output_directory),
            output_directory,
            settings=RunSettings(remove_repeated_dir=remove_repeated_dir, hlo_dump=enable_hlo_dump),
            limits=not no_limits,
            strict=strict,
            lock=not no_lock,
            host_wait_s=host_wait,
        )
    except (PointFailed, CannotRecord, HostsMissing) as failure:
        print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(_EXIT_FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(_EXIT_INTERRUPTED) from None
