"""Commands that measure: the flags that they share, and the hosts on which they do."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from orbax_bench_core.cli import arguments

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, RunSettings
    from orbax_bench_core.steps import Experiment

NoCluster = Annotated[
    bool,
    typer.Option(
        "--no-cluster",
        "--no_cluster",
        help="Measure on this host alone, whatever the variables of a launcher say.",
    ),
]
HostWait = Annotated[
    float,
    typer.Option(
        "--host-wait",
        "--host_wait",
        min=0,
        metavar="SECONDS",
        help="How long a lost host may take to come back before the run ends as incomplete.",
    ),
]
PortRangeOption = Annotated[
    str | None,
    typer.Option(
        "--port-range",
        "--port_range",
        metavar="FIRST-LAST",
        help="Ports of host 0 for coordinating groups of workers, if a firewall allows only "
        "some; otherwise any free port.",
    ),
]
KEEP_DATA: Final = (
    "Keep the checkpoint of each repeat. Otherwise it is deleted after its repeat, as a "
    "training job deletes old ones; saves take longer if it is kept."
)
KeepData = Annotated[bool, typer.Option("--keep-data", "--keep_data", help=KEEP_DATA)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasureFlags:
    """Flags of a command that measures, in the order of its help; each takes some of them."""

    local_directory: arguments.LocalDirectory = None
    override: arguments.Override = None
    devices: arguments.Devices = None
    keep_data: KeepData = False
    no_lock: arguments.NoLock = False
    no_cluster: NoCluster = False
    host_wait: HostWait = 120
    port_range: PortRangeOption = None
    notify: arguments.Notify = None
    junit: arguments.JUnit = None
    verbose: arguments.Verbose = False
    quiet: arguments.Quiet = False
    log_format: arguments.LogFormatOption = "text"
    as_json: arguments.AsJson = False


def takes_measure_flags(
    *, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command, in the place of its parameter `flags`, all of `MeasureFlags` but some."""
    kinds = typing.get_type_hints(MeasureFlags, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=kinds[field.name],
        )
        for field in dataclasses.fields(MeasureFlags)
        if field.name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def parsed(**given: Any) -> None:
            flags = {one.name: given.pop(one.name) for one in shared}
            command(**given, flags=MeasureFlags(**flags))

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for given in own
            for one in (shared if given.name == "flags" else [given])
        ]
        del parsed.__wrapped__
        parsed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        parsed.__annotations__ = {one.name: one.annotation for one in parameters}
        return parsed

    return decorate


def place_in_cluster(*, no_cluster: bool) -> Cluster | None:
    """Returns the place of this process among several hosts, and says it; None for one host."""
    from orbax_bench_core.execute import detect_cluster, to_stderr

    cluster = None if no_cluster else detect_cluster(os.environ)
    if cluster is not None:
        to_stderr(cluster.said)
    return cluster


def load_for_hosts(
    path: str,
    override: Sequence[str],
    cluster: Cluster | None,
    experiment: Experiment | None = None,
) -> LoadedSuite:
    """Loads a suite, whose points run on all hosts together unless it says something else."""
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.execute import unshipped
    from orbax_bench_core.steps import Experiment, load_for

    read = functools.partial(load_suite, unshipped(path))
    return load_for(experiment or Experiment(), read, override, cluster.size if cluster else 1)


def name_in(suite: str) -> str | None:
    """Returns the name of a suite that may be wrong otherwise; None where even that is missing."""
    from orbax_bench_core.config import name_of
    from orbax_bench_core.files import read_at_most

    try:
        return name_of(read_at_most(suite).decode())
    except (OSError, ImportError, ValueError):
        return None


def measure_suite(
    suite: str,
    output_directory: str | None,
    flags: MeasureFlags,
    experiment: Experiment,
    *,
    allow_inconclusive: bool = False,
    **more: Any,
) -> NoReturn:
    """Makes an experiment with a suite, shows what it found, and exits; `more` as `measure_by`."""

    def measure(loaded: LoadedSuite, directory: str, how: Measuring) -> int:
        from orbax_bench_core.cli.measurement import Measurement

        run = Measurement(experiment, loaded, directory, how)
        return run.run(allow_inconclusive=allow_inconclusive)

    measure_by(measure, suite, output_directory, flags, experiment, **{"give_up": True, **more})


def measure_by(
    measure: Callable[[LoadedSuite, str, Measuring], int],
    suite: str,
    output_directory: str | None,
    flags: MeasureFlags,
    experiment: Experiment | None = None,
    *,
    tells: bool = True,
    stderr: bool = False,
    **settings: Any,
) -> NoReturn:
    """Measures a suite on this host, or on all where a launcher has started this on several; exits.

    `measure` gets the suite and the run directory on process 0, and returns the exit code of every
    host. Without an output directory the experiment names it. With `tells` what is found goes to
    the webhook and its like, with `stderr` nothing of the progress to standard output; `settings`
    are other `RunSettings`.
    """
    from orbax_bench_core.execute import (
        LocalHost,
        PortRange,
        RunSettings,
        on_hosts,
        serve,
        to_stderr,
    )
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import Experiment, Notifiers

    cluster = place_in_cluster(no_cluster=flags.no_cluster)
    has_suite = "://" in suite or Path(suite).exists()
    if output_directory is not None and cluster is not None and cluster.rank and not has_suite:
        # Such a host serves process 0 until the run ends.
        raise typer.Exit(serve(cluster, RunDirectory(output_directory), suite, to_stderr))
    tells = tells and (cluster is None or not cluster.rank)
    notifiers = Notifiers.of(flags.notify, flags.junit) if tells else Notifiers()
    experiment = experiment or Experiment()
    with notifiers.on_failure(name_in(suite), output_directory or "."), experiment.errors():
        loaded = load_for_hosts(suite, flags.override or (), cluster, experiment)
    directory = experiment.folder if output_directory is None else output_directory
    settings = {
        "local_directory": flags.local_directory,
        "devices": flags.devices,
        "keep_data": flags.keep_data,
        **settings,
    }
    if flags.port_range is not None:
        settings["host"] = LocalHost(ports=PortRange.parse(flags.port_range))

    def start(placed: RunSettings) -> int:
        from orbax_bench_core.cli.measurement import Measuring, Reporter

        with notifiers.on_failure(loaded.suite.suite_name, directory), experiment.errors():
            how = Measuring(
                settings=placed,
                reporter=Reporter(flags, stderr=stderr),
                notifiers=notifiers,
                lock=not flags.no_lock,
            )
            return measure(loaded, directory, how)

    code = on_hosts(
        cluster,
        RunDirectory(directory),
        start,
        suite=loaded,
        settings=RunSettings(**settings),
        say=to_stderr,
        host_wait_s=flags.host_wait,
    )
    raise typer.Exit(code)
