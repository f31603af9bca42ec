"""`orbax-bench upgrade`: a verdict on a release of Orbax, without writing a suite."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import (
    AllowInconclusive,
    Devices,
    JUnit,
    LogFormat,
    LogFormatOption,
    NoLock,
    Notify,
    Override,
    PassportFile,
    Quiet,
    Verbose,
)
from orbax_bench_core.cli.hosts import (
    HostWait,
    NoCluster,
    PortRangeOption,
    load_for_hosts,
    measure_on_hosts,
    outlets_of,
    place_in_cluster,
    serve_without_suite,
)


def upgrade(
    old: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="VERSION", help="The release in use; by default the installed one."
        ),
    ] = None,
    new: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="VERSION", help="The release to judge; by default the newest one."
        ),
    ] = None,
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            help="The run directory; by default upgrade-FROM-TO in this folder.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What to measure; by default saves and loads of 12 MiB of arrays."
        ),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="What else both environments have, such as jax==0.10.2; repeatable.",
        ),
    ] = None,
    allow_inconclusive: AllowInconclusive = False,
    passport: PassportFile = None,
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
    """Give a verdict on a release of Orbax, against another one.

    Each release has an environment of its own, which is made once, by uv, and kept. Everything else
    in it, JAX too, is as it is here. The releases are compared as `orbax-bench ab` compares arms:
    REGRESSION, PASS or INCONCLUSIVE. It says before it begins how long that takes.

    orbax-bench upgrade --from 0.11.32 --to 0.12.8

    Exit codes: 0 PASS, 1 nothing could be compared, 2 there is no such release or the suite is
    invalid, 3 REGRESSION, 4 INCONCLUSIVE, 130 interrupted. The same command finishes what was
    interrupted.
    """
    from orbax_bench_core.analysis import noise as passports
    from orbax_bench_core.cli.comparison_run import ComparisonRun
    from orbax_bench_core.cli.output import Output
    from orbax_bench_core.config import parse_suite
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps.releases import make_both, plan_upgrade
    from orbax_bench_core.suite_files import UPGRADE_SUITE

    cluster = place_in_cluster(no_cluster=no_cluster)
    path = suite or str(UPGRADE_SUITE)
    if output_directory is not None:
        serve_without_suite(cluster, path, output_directory)
    notifiers = outlets_of(cluster, notify, junit)
    known = passports.find(passport)
    loaded = load_for_hosts(path, override or (), cluster)
    if suite is None:  # its folder is ours, and has nothing for a worker to import
        loaded = parse_suite(loaded.text, UPGRADE_SUITE.name)
    planned = plan_upgrade(loaded, old, new, also=also or ())
    root = output_directory or f"upgrade-{planned.old}-{planned.new}"

    def measure(settings: RunSettings) -> int:
        output = Output.to_stdout(log_format, verbose=verbose, quiet=quiet, notifiers=notifiers)
        with notifiers.on_failure(planned.suite.suite.suite_name, root):
            measurement = ComparisonRun(
                planned.suite, root, settings=settings, output=output, lock=not no_lock
            )
            measurement.introduce(known)
            make_both(planned, output.say)
            return measurement.compare(passport=known, allow_inconclusive=allow_inconclusive)

    settings = RunSettings(
        remove_repeated_dir=True,
        devices=devices,
        give_up=True,
        process_noise=None if known is None else passports.processes_of(known),
    )
    code = measure_on_hosts(
        cluster,
        planned.suite,
        root,
        settings=settings,
        host_wait=host_wait,
        port_range=port_range,
        measure=measure,
    )
    raise typer.Exit(code)
