"""`orbax-bench ab`: compare two arms of a suite and give a verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import (
    AllowInconclusive,
    Devices,
    JUnit,
    LocalDirectory,
    LogFormat,
    LogFormatOption,
    NoLock,
    Notify,
    OutputDirectory,
    Override,
    PassportFile,
    Quiet,
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


def ab(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            "-b",
            metavar="KEY=VALUE",
            help="What the baseline has different: an option of the benchmark, or environment=, "
            "generator=, processes=. For a suite without `arms`; repeatable.",
        ),
    ] = None,
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            "-c",
            metavar="KEY=VALUE",
            help="What the candidate has different, in the same way.",
        ),
    ] = None,
    same: Annotated[
        bool,
        typer.Option(
            "--aa",
            help="Compare the suite with itself, in several worker processes per arm, which must "
            "not give REGRESSION: a check of the machine, and food for `orbax-bench calibrate`.",
        ),
    ] = False,
    allow_inconclusive: AllowInconclusive = False,
    take_turns: Annotated[
        bool,
        typer.Option(
            "--take-turns",
            help="Run the workers of one arm at a time, to save memory. TPUs always do this.",
        ),
    ] = False,
    keep_data: Annotated[
        bool,
        typer.Option("--keep-data", help="Keep the checkpoints, which are deleted otherwise."),
    ] = False,
    passport: PassportFile = None,
    local_directory: LocalDirectory = None,
    override: Override = None,
    devices: Devices = None,
    no_lock: NoLock = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    notify: Notify = None,
    junit: JUnit = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Compare two arms of a suite and give a verdict.

    It is REGRESSION, PASS or INCONCLUSIVE.

    Both arms run here in small blocks of random order, so that a machine that drifts or stalls
    slows both. After 10, 20, 40 and 60 operations per arm the times are looked at, and a clear
    answer ends it. Arms that cannot share a worker have a new one for each slot of a block, and
    looks from 16 operations on. The arms come from the suite's `arms` block or from the command
    line:

    orbax-bench ab suite.yaml -o results --candidate use_ocdbt=false

    Exit codes: 0 PASS, 1 nothing could be compared, 2 the suite is invalid, 3 REGRESSION,
    4 INCONCLUSIVE, 130 interrupted. The same command finishes what was interrupted.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.cli.arm_flags import told_by_flags, with_arms
    from orbax_bench_core.cli.comparison_run import ComparisonRun
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.execute import RunSettings

    cluster = place_in_cluster(no_cluster=no_cluster)
    serve_without_suite(cluster, suite, output_directory)
    notifiers = outlets_of(cluster, notify, junit)
    known = passports.find(passport)
    by_flags = told_by_flags(baseline or [], candidate or [])
    with notifiers.on_failure(name_in(suite), output_directory), by_flags:
        loaded = load_for_hosts(suite, override or (), cluster)
        with_both = with_arms(loaded, baseline or [], candidate or [], same=same)

    def measure(settings: RunSettings) -> int:
        by_flags = told_by_flags(baseline or [], candidate or [])
        with notifiers.on_failure(loaded.suite.suite_name, output_directory), by_flags:
            measurement = ComparisonRun(
                with_both,
                output_directory,
                settings=settings,
                output=Output.to_stdout(
                    log_format, verbose=verbose, quiet=quiet, notifiers=notifiers
                ),
                lock=not no_lock,
            )
            return measurement.compare(passport=known, allow_inconclusive=allow_inconclusive)

    settings = RunSettings(
        local_directory=local_directory,
        remove_repeated_dir=not keep_data,
        devices=devices,
        take_turns=take_turns,
        give_up=True,
        process_noise=None if known is None else passports.processes_of(known),
    )
    code = measure_on_hosts(
        cluster,
        with_both,
        output_directory,
        settings=settings,
        host_wait=host_wait,
        port_range=port_range,
        measure=measure,
    )
    raise typer.Exit(code)
