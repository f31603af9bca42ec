"""`orbax-bench soak`: hundreds of saves in one process, and what it keeps of each."""

from __future__ import annotations

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
    from orbax_bench_core.analysis.soak import Soak
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, RunSettings
    from orbax_bench_core.records import RunDirectory


def soak(
    place: Annotated[
        str,
        typer.Argument(
            metavar="SUITE|DIR",
            help="A suite to soak or, without --saves and --hours, the run directory of a soak to "
            "judge again.",
        ),
    ],
    saves: Annotated[
        int | None,
        typer.Option("--saves", metavar="N", help="End after so many saves of one process."),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option("--hours", metavar="T", help="End after so many hours of one process."),
    ] = None,
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            metavar="MIB",
            min=0.0,
            help="Memory that a process may keep of each save, in MiB.",
        ),
    ] = 0.1,
    output_directory: Annotated[
        str | None,
        typer.Option(
            "--output-directory",
            "--output_directory",
            "-o",
            metavar="DIR",
            help="The run directory, local or gs://; the same command goes on with what it holds.",
        ),
    ] = None,
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
    """Save hundreds of times in one process, and find out what it keeps of each save.

    It repeats a suite until one process has made N saves, or has measured for T hours, and reads
    the memory of the process, of its device and of its control group, its file descriptors and its
    threads after each. The growth per save comes with its 95 % interval: LEAK when it lies above
    --limit, PASS when it lies below, for all saves and for the second half of them alone;
    INCONCLUSIVE otherwise, with the number of saves that would tell. It writes soak.html, soak.md
    and soak.json into the run directory, beside the report of the run. Checkpoints are deleted.

    A stopped soak loses nothing that has finished, but its process is gone: the same command goes
    on with a new one, and judges the longest.

    orbax-bench soak examples/soak.yaml --saves 200 -o /tmp/soak

    orbax-bench soak /tmp/soak --limit 0.01

    Exit codes: 0 PASS, 3 LEAK, 4 INCONCLUSIVE, 1 a repeat failed, 2 the suite is invalid, 130
    interrupted.
    """
    from orbax_bench_core.errors import UserError, check_amounts
    from orbax_bench_core.execute import RunSettings
    from orbax_bench_core.steps import Notifiers, SoakGoal, check_soak

    check_amounts(**{"--limit": limit})
    if saves is None and hours is None and output_directory is None:
        refuse_override(override, notify)
        raise typer.Exit(_judge_anew(place, limit, as_json=as_json))
    goal = SoakGoal(saves=saves, hours=hours)
    if output_directory is None:
        raise UserError("a soak is measured in a run directory: give --output-directory DIR")
    directory = output_directory

    def load(path: str, given: Sequence[str], cluster: Cluster | None) -> LoadedSuite:
        return check_soak(load_for_hosts(path, given, cluster))

    def measure(loaded: LoadedSuite, settings: RunSettings) -> int:
        from orbax_bench_core.cli.output import Output
        from orbax_bench_core.cli.soak_run import SoakRun

        notifiers = Notifiers.of(notify)
        output = Output.beside(as_json=as_json, verbose=verbose, quiet=quiet, notifiers=notifiers)
        with notifiers.on_failure(loaded.suite.suite_name, directory):
            run = SoakRun(loaded, directory, settings=settings, output=output, lock=not no_lock)
            return run.soak(goal, limit_mib=limit, as_json=as_json)

    measure_suite(
        place,
        _repeats(override or [], saves),
        directory,
        flags=ClusterFlags(no_cluster=no_cluster, host_wait=host_wait, port_range=port_range),
        settings=RunSettings(
            local_directory=local_directory, remove_repeated_dir=True, devices=devices, soak=True
        ),
        measure=measure,
        load=load,
    )


def _repeats(override: list[str], saves: int | None) -> list[str]:
    """Returns the overrides with as many repeats as there may be: one save each, if not more."""
    return override if saves is None else [*override, f"num_repeats={saves}"]


def _judge_anew(directory: str, limit: float, *, as_json: bool) -> int:
    from orbax_bench_core.analysis.soak import soak_document
    from orbax_bench_core.cli.results import published, show_answer
    from orbax_bench_core.errors import command
    from orbax_bench_core.steps import publish, publish_soak

    def publish_anew(run: RunDirectory) -> Soak:
        found = publish_soak(run, limit)
        publish(run)  # the report has the verdict by the same limit
        return found

    found = published(
        directory,
        publish_anew,
        otherwise="To soak a suite, say for how long and where: "
        f"`{command('soak', directory, '--saves', 200, '-o', 'DIR')}`",
    )
    show_answer(found, soak_document(found), f"{directory}/soak.html", as_json=as_json)
    return exit_code(found.outcome)
