"""`orbax-bench recovery`: training that is killed, and the time until it goes on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import (
    Devices,
    LocalDirectory,
    NoLock,
    Notify,
    Override,
    Quiet,
    Verbose,
    refuse_override,
)
from orbax_bench_core.cli.hosts import (
    ClusterFlags,
    HostWait,
    NoCluster,
    PortRangeOption,
    load_for_hosts,
    measure_suite,
)
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.analysis.recovery import PhaseName
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, RunSettings


def recovery(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to drill or, without --output-directory, the run directory of drills to "
            "show again.",
        ),
    ],
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="The run directory; the same command goes on with what it holds.",
        ),
    ] = None,
    add_notice: Annotated[
        float,
        typer.Option(
            "--add-notice",
            metavar="S",
            min=0.0,
            help="Seconds until your platform notices a failure, beyond what is measured here.",
        ),
    ] = 0.0,
    add_start: Annotated[
        float,
        typer.Option(
            "--add-start",
            metavar="S",
            min=0.0,
            help="Seconds to replace a node, to wait for a scheduler and to start accelerators.",
        ),
    ] = 0.0,
    allow_inconclusive: Annotated[
        bool,
        typer.Option("--allow-inconclusive", help="With arms: exit with 0 for INCONCLUSIVE too."),
    ] = False,
    local_directory: LocalDirectory = None,
    override: Override = None,
    devices: Devices = None,
    no_lock: NoLock = False,
    no_cluster: NoCluster = False,
    host_wait: HostWait = 120,
    port_range: PortRangeOption = None,
    notify: Notify = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Kill a training job again and again, and find out how fast it is back.

    Every repeat trains in fresh processes and saves at an interval, is killed with SIGKILL at a
    drawn step, and goes on in new processes from the last committed save. Shown are the time to
    notice, to start, to restore and to the first step, the steps lost, the saves left uncommitted,
    and how many drills came back with the state of a job that was never killed. A suite with arms
    ends in a verdict on the whole recovery. It writes recovery.html, recovery.md and recovery.json
    into the run directory, beside the report of the run. Checkpoints are deleted.

    The suite has the benchmark training_job. What one machine cannot show is given in seconds:

    orbax-bench recovery examples/recovery.yaml -o /tmp/recovery

    orbax-bench recovery /tmp/recovery --add-notice 30 --add-start 180

    Exit codes: 0 every drill came back, 1 some did not, 2 the suite is invalid, 130 interrupted;
    with arms 0 PASS, 3 REGRESSION, 4 INCONCLUSIVE.
    """
    from orbax_bench_core.errors import check_amounts
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps import load_drilled

    check_amounts(**{"--add-notice": add_notice, "--add-start": add_start})
    added: dict[PhaseName, float] = {"notice": add_notice, "start": add_start}
    if output_directory is None:
        refuse_override(override, notify)
        raise typer.Exit(
            _show_anew(place, added, allow_inconclusive=allow_inconclusive, as_json=as_json)
        )
    directory = output_directory

    def load(path: str, given: Sequence[str], cluster: Cluster | None) -> LoadedSuite:
        return load_drilled(path, given, functools.partial(load_for_hosts, cluster=cluster))

    def measure(loaded: LoadedSuite, settings: RunSettings) -> int:
        from orbax_bench_core.cli.output import Output
        from orbax_bench_core.cli.recovery_run import RecoveryRun
        from orbax_bench_core.steps import Notifiers

        notifiers = Notifiers.of(notify)
        output = Output.beside(as_json=as_json, verbose=verbose, quiet=quiet, notifiers=notifiers)
        with notifiers.on_failure(loaded.suite.suite_name, directory):
            run = RecoveryRun(loaded, directory, settings=settings, output=output, lock=not no_lock)
            return run.drill(added, allow_inconclusive=allow_inconclusive, as_json=as_json)

    measure_suite(
        place,
        override or (),
        directory,
        flags=ClusterFlags(no_cluster=no_cluster, host_wait=host_wait, port_range=port_range),
        settings=RunSettings(
            local_directory=local_directory,
            remove_repeated_dir=True,
            devices=devices,
            drill=True,
            give_up=True,
        ),
        measure=measure,
        load=load,
    )


def _show_anew(
    directory: str,
    added: dict[PhaseName, float],
    *,
    allow_inconclusive: bool,
    as_json: bool,
) -> int:
    from orbax_bench_core.analysis.recovery import recovery_document
    from orbax_bench_core.cli.results import published, show_answer
    from orbax_bench_core.errors import command
    from orbax_bench_core.steps import publish_recovery

    found = published(
        directory,
        lambda run: publish_recovery(run, added),
        otherwise=f"To drill a suite, say where: `{command('recovery', directory, '-o', 'DIR')}`",
    )
    show_answer(found, recovery_document(found), f"{directory}/recovery.html", as_json=as_json)
    return exit_code(found.outcome, allow_inconclusive=allow_inconclusive)
