"""`orbax-bench run`: run a suite on this machine, or on all hosts of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import (
    Devices,
    LocalDirectory,
    LogFormat,
    LogFormatOption,
    Metrics,
    NoLock,
    Notify,
    OutputDirectory,
    Override,
    Quiet,
    ShownMetrics,
    SuiteFile,
    Verbose,
)
from orbax_bench_core.cli.hosts import (
    HostWait,
    NoCluster,
    PortRangeOption,
    load_for_hosts,
    measure_on_hosts,
    name_in,
    outlets_of,
    place_in_cluster,
    serve_without_suite,
)


def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    local_directory: LocalDirectory = None,
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
    metrics: Metrics = ShownMetrics.CHANGED,
    override: Override = None,
    devices: Devices = None,
    no_lock: NoLock = False,
    no_limits: Annotated[
        bool,
        typer.Option(
            "--no-limits",
            help="Do not measure what this machine and storage can do with the same bytes; "
            "otherwise each operation is shown as a share of that.",
        ),
    ] = False,
    new_limits: Annotated[
        bool,
        typer.Option(
            "--new-limits",
            help="Measure these again, even where those of an earlier run are kept and a short "
            "check agrees with them.",
        ),
    ] = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    notify: Notify = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run a suite and show what it found.

    Killing it at any moment loses nothing that has finished: the same command goes on from there.

    On several hosts, start the same command on each with JAX_COORDINATOR_ADDRESS,
    JAX_NUM_PROCESSES and JAX_PROCESS_ID, or by a launcher that sets its own variables: process 0
    runs the suite on all of them.

    Exit codes: 0 every repeat passed, 1 some failed, 2 the suite is invalid, 130 interrupted.
    """
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.cli.sweep_run import Baselines, SweepRun, without_arms
    from orbax_bench_core.execute import RunSettings

    cluster = place_in_cluster(no_cluster=no_cluster)
    serve_without_suite(cluster, suite, output_directory)
    notifiers = outlets_of(cluster, notify)
    with notifiers.on_failure(name_in(suite), output_directory):
        loaded = without_arms(load_for_hosts(suite, override or (), cluster))
        baselines = Baselines.of(
            loaded, compare=baseline_path, capture=baseline_capture_path, metrics=metrics.value
        )

    def measure(settings: RunSettings) -> int:
        with notifiers.on_failure(loaded.suite.suite_name, output_directory):
            measurement = SweepRun(
                loaded,
                output_directory,
                settings=settings,
                output=Output.to_stdout(
                    log_format, verbose=verbose, quiet=quiet, notifiers=notifiers
                ),
                lock=not no_lock,
            )
            return measurement.run(limits=not no_limits, baselines=baselines)

    settings = RunSettings(
        local_directory=local_directory,
        remove_repeated_dir=remove_repeated_dir,
        hlo_dump=enable_hlo_dump,
        devices=devices,
        give_up=True,
        new_limits=new_limits,
    )
    code = measure_on_hosts(
        cluster,
        loaded,
        output_directory,
        settings=settings,
        host_wait=host_wait,
        port_range=port_range,
        measure=measure,
    )
    raise typer.Exit(code)
