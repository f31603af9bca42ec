"""Hosts of a run: process 0 orchestrates, and the same command elsewhere is an agent."""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, RunSettings
    from orbax_bench_core.steps import Notifiers

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Reach(enum.Enum):
    """Hosts that a command has to do with, where a launcher starts it on several.

    Every command is registered with one. What measures and says nothing here is refused there by
    `orbax_bench_core.steps`.
    """

    ALL_HOSTS = "measures on all of them together, by `measure_on_hosts`"
    THIS_HOST = "looks at or works on this one alone, and says so"
    BY_STEP = "leaves it to its steps, of which one measures on all and others refuse"
    NONE = "measures nothing here, and takes no notice of launchers"


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
        help="How long a host with which contact is lost may take to come back before the run "
        "ends as incomplete.",
    ),
]
PortRangeOption = Annotated[
    str | None,
    typer.Option(
        "--port-range",
        "--port_range",
        metavar="FIRST-LAST",
        help="Ports of host 0 at which groups of workers may be coordinated, where a firewall lets "
        "only some through; otherwise any free one.",
    ),
]


def place_in_cluster(*, no_cluster: bool) -> Cluster | None:
    """Returns the place of this process among several hosts, and says it; None for one host.

    Raises:
        UserError: The variables of the launcher are wrong.
    """
    from orbax_bench_core.execute import detect_cluster

    cluster = None if no_cluster else detect_cluster(os.environ)
    if cluster is not None:
        _say(cluster.said)
    return cluster


def for_this_host(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Returns a command that says, where there are several hosts, that it is for this one."""

    @functools.wraps(command)
    def start(*given: _P.args, **flags: _P.kwargs) -> _R:
        from orbax_bench_core.errors import UserError
        from orbax_bench_core.execute import detect_cluster

        try:
            cluster = detect_cluster(os.environ)
        except UserError as wrong:  # what it is asked for needs no cluster
            _say(f"note: {wrong}")
        else:
            if cluster is not None:
                _say(f"{cluster.said}; this command is for this host alone")
        return command(*given, **flags)

    return start


def load_for_hosts(path: str, override: Sequence[str], cluster: Cluster | None) -> LoadedSuite:
    """Loads a suite, whose points run on all hosts together unless it says something else.

    Raises:
        UserError: The suite is invalid.
    """
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.execute import unshipped

    path = unshipped(path)
    loaded = load_suite(path, override)
    if cluster is None:
        return loaded
    if "processes" in loaded.suite.execution.model_fields_set:
        return loaded
    return load_suite(path, [*override, f"execution.processes={cluster.size}"])


def name_in(suite: str) -> str | None:
    """Returns the name of a suite that may be wrong otherwise; None where even that is missing."""
    from orbax_bench_core.config import Source
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import read_at_most

    try:
        content = Source(read_at_most(suite).decode()).data
    except (OSError, ImportError, ValueError, UserError):
        return None
    name = content.get("suite_name") if isinstance(content, dict) else None
    return name if isinstance(name, str) else None


def outlets_of(cluster: Cluster | None, notify: str | None, junit: str | None = None) -> Notifiers:
    """Returns where process 0 tells what it found; every other host has nothing to tell.

    Raises:
        UserError: The address to notify is none.
    """
    from orbax_bench_core.steps import Notifiers

    return Notifiers() if cluster is not None and cluster.rank else Notifiers.of(notify, junit)


def serve_without_suite(cluster: Cluster | None, suite: str, output_directory: str) -> None:
    """Serves process 0 until the run ends, and exits, on a host that has no such suite file.

    Process 0 has put a copy into the run directory. On any other host this does nothing.

    Raises:
        UserError: This host cannot join.
    """
    from orbax_bench_core.execute import RunSettings, equal_everywhere, serve
    from orbax_bench_core.records import RunDirectory

    if cluster is not None and cluster.rank and "://" not in suite and not Path(suite).exists():
        code = serve(
            cluster,
            RunDirectory(output_directory),
            suite=suite,
            equal=equal_everywhere(),
            settings=RunSettings(),
            say=_say,
        )
        raise typer.Exit(code)


def measure_on_hosts(
    cluster: Cluster | None,
    suite: LoadedSuite,
    output_directory: str,
    *,
    settings: RunSettings,
    host_wait: float,
    port_range: str | None,
    measure: Callable[[RunSettings], int],
) -> int:
    """Measures on one host, or on all hosts of a cluster.

    Args:
        cluster: The place of this process; None measures here alone.
        suite: The suite.
        output_directory: The run directory, or the one that is to hold several; all hosts share it.
        settings: How to measure; its host starts the workers of this machine.
        host_wait: Seconds for which a lost host is waited for.
        port_range: Ports of host 0 that workers may listen at; None for any.
        measure: Measures with the settings that it is given, on process 0.

    Returns:
        The exit code, which is the same on every host.

    Raises:
        UserError: This host cannot join, or others have not.
    """
    from orbax_bench_core.execute import LocalHost, PortRange, equal_everywhere, on_hosts
    from orbax_bench_core.records import RunDirectory

    if port_range is not None:
        assert isinstance(settings.host, LocalHost)
        local = dataclasses.replace(settings.host, ports=PortRange.parse(port_range))
        settings = dataclasses.replace(settings, host=local)
    return on_hosts(
        cluster,
        RunDirectory(output_directory),
        measure,
        suite=suite,
        equal=equal_everywhere(),
        settings=settings,
        say=_say,
        host_wait_s=host_wait,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterFlags:
    """Flags on the hosts of a measurement.

    Attributes:
        no_cluster: Whether it is measured on this host alone.
        host_wait: Seconds for which a lost host is waited for.
        port_range: Ports of host 0 that workers may listen at; None for any.
    """

    no_cluster: bool
    host_wait: float
    port_range: str | None


def measure_suite(
    suite: str,
    override: Sequence[str],
    output_directory: str,
    *,
    flags: ClusterFlags,
    settings: RunSettings,
    measure: Callable[[LoadedSuite, RunSettings], int],
    load: Callable[[str, Sequence[str], Cluster | None], LoadedSuite] = load_for_hosts,
) -> NoReturn:
    """Measures a suite on this host, or on all where a launcher has started this on several; exits.

    Args:
        suite: Path of the suite file.
        override: Keys of it to change.
        output_directory: The run directory.
        flags: What the command line says of hosts.
        settings: How to measure.
        measure: Measures the suite with the settings that it is given, on process 0, and returns
            the exit code of every host.
        load: Reads the suite for the hosts that there are.

    Raises:
        UserError: The suite is invalid, or hosts cannot join.
    """
    cluster = place_in_cluster(no_cluster=flags.no_cluster)
    serve_without_suite(cluster, suite, output_directory)
    loaded = load(suite, override, cluster)
    code = measure_on_hosts(
        cluster,
        loaded,
        output_directory,
        settings=settings,
        host_wait=flags.host_wait,
        port_range=flags.port_range,
        measure=functools.partial(measure, loaded),
    )
    raise typer.Exit(code)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
