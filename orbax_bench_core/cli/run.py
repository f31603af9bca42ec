"""`orbax-bench run`: run a suite on this machine."""

from __future__ import annotations

import enum
import sys
from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile


class LogFormat(enum.StrEnum):
    """How progress and results are shown."""

    TEXT = "text"
    JSON = "json"


def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    local_directory: Annotated[
        str | None,
        typer.Option(
            "--local-directory",
            "--local_directory",
            help="Scratch directory on the local disk, for benchmarks that use one.",
        ),
    ] = None,
    enable_hlo_dump: Annotated[
        bool,
        typer.Option(
            "--enable-hlo-dump", "--enable_hlo_dump", help="Write XLA HLO protos to hlo_dump/."
        ),
    ] = False,
    remove_repeated_dir: Annotated[
        bool,
        typer.Option(
            "--remove-repeated-dir",
            "--remove_repeated_dir",
            help="Delete checkpoint data after each repeat.",
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
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Simulate this many CPU devices; meshes that need another number are skipped. "
            "By default each mesh gets what it needs.",
        ),
    ] = None,
    no_lock: Annotated[
        bool,
        typer.Option("--no-lock", help="Measure even while another run measures on this machine."),
    ] = False,
    no_limits: Annotated[
        bool,
        typer.Option(
            "--no-limits",
            help="Do not measure what this machine and storage can do with the same bytes; "
            "otherwise each operation is shown as a share of that.",
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Also show what begins, and what was done before."),
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="text for people, json for one JSON object a line.")
    ] = LogFormat.TEXT,
) -> None:
    """Run a suite and show what it found.

    Killing it at any moment loses nothing that has finished: the same command goes on from there.

    Exit codes: 0 every repeat passed, 1 some failed, 2 the suite is invalid, 130 interrupted.
    """
    from rich.console import Console

    from orbax_bench_core.cli.suite_run import Baselines, SuiteRun
    from orbax_bench_core.execute.orchestrator import RunSettings
    from orbax_bench_core.report.json_log import JsonLog

    as_json = log_format is LogFormat.JSON
    suite_run = SuiteRun(
        suite,
        output_directory,
        settings=RunSettings(
            local_directory=local_directory,
            remove_repeated_dir=remove_repeated_dir,
            hlo_dump=enable_hlo_dump,
            devices=devices,
        ),
        baselines=Baselines(compare=baseline_path, capture=baseline_capture_path),
        console=Console(soft_wrap=not sys.stdout.isatty(), quiet=as_json),
        json_log=JsonLog(sys.stdout) if as_json else None,
        verbose=verbose,
        lock=not no_lock,
        limits=not no_limits,
    )
    raise typer.Exit(suite_run.run())
