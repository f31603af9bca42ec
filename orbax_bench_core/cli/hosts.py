"""Commands that measure, and the hosts on which they do."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from orbax_bench_core.cli.arguments import MeasureFlags

if TYPE_CHECKING:
    from orbax_bench_core.cli.measurement import Measuring
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, RunSettings
    from orbax_bench_core.experiments import Experiment


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
    from orbax_bench_core.experiments import Experiment, load_for

    read = functools.partial(load_suite, unshipped(path))
    return load_for(experiment or Experiment(), read, override, cluster.size if cluster else 1)


def name_in(suite: str) -> str | None:
    """Returns the name of a suite that may be wrong otherwise; None if even that is missing."""
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
    from orbax_bench_core.experiments import Experiment
    from orbax_bench_core.publishing import Notifiers
    from orbax_bench_core.records import RunDirectory

    cluster = place_in_cluster(no_cluster=flags.no_cluster)
    has_suite = "://" in suite or Path(suite).exists()
    if output_directory is not None and cluster is not None and cluster.rank and not has_suite:
        # Such a host serves process 0 until the run ends.
        raise typer.Exit(serve(cluster, RunDirectory(output_directory), suite, to_stderr))
    tells = tells and (cluster is None or not cluster.rank)
    notifiers = Notifiers.of(flags.notify, flags.junit) if tells else Notifiers()
    experiment = experiment or Experiment()
    named = functools.partial(name_in, suite)
    with notifiers.on_failure(output_directory or ".", named), experiment.errors():
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

        name = loaded.suite.suite_name
        with notifiers.on_failure(directory, lambda: name), experiment.errors():
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
