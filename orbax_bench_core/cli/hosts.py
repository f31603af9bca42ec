"""Hosts of a run: process 0 orchestrates, and the same command elsewhere is an agent."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite
    from orbax_bench_core.execute import Cluster, LocalHost, RunSettings

_EXIT_INVALID: Final = 2
_EXIT_INTERRUPTED: Final = 130

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


def load_for_hosts(path: str, override: Sequence[str], cluster: Cluster | None) -> LoadedSuite:
    """Loads a suite, whose points run on all hosts together unless it says something else.

    Raises:
        UserError: The suite is invalid.
    """
    from orbax_bench_core.config import load_suite
    from orbax_bench_core.launchers import unshipped

    path = unshipped(path)
    loaded = load_suite(path, override)
    if cluster is None:
        return loaded
    if "processes" in loaded.suite.execution.model_fields_set:
        return loaded
    return load_suite(path, [*override, f"execution.processes={cluster.size}"])


def serve_without_suite(cluster: Cluster | None, suite: str, output_directory: str) -> None:
    """Serves process 0 until the run ends, and exits, on a host that has no such suite file.

    Process 0 has put a copy into the run directory. On any other host this does nothing.

    Raises:
        UserError: This host cannot join.
    """
    from orbax_bench_core.execute import RunSettings

    if cluster is not None and cluster.rank and "://" not in suite and not Path(suite).exists():
        raise typer.Exit(_serve(cluster, suite, output_directory, RunSettings()))


def on_hosts(
    cluster: Cluster | None,
    suite: LoadedSuite,
    output_directory: str,
    *,
    settings: RunSettings,
    host_wait: float,
    port_range: str | None = None,
    measure: Callable[[RunSettings], int],
) -> int:
    """Measures on one host, or on all hosts of a cluster.

    Args:
        cluster: The place of this process; None measures here alone.
        suite: The suite.
        output_directory: The run directory, which all hosts share.
        settings: How to measure; its host starts the workers of this machine.
        host_wait: Seconds for which a lost host is waited for.
        port_range: Ports of host 0 that workers may listen at; None for any.
        measure: Measures with the settings that it is given, on process 0.

    Returns:
        The exit code, which is the same on every host.

    Raises:
        UserError: This host cannot join, or others have not.
    """
    from orbax_bench_core.config import UserError
    from orbax_bench_core.execute import ClusterHosts, PortRange, equal_everywhere, given_token
    from orbax_bench_core.records import RunDirectory

    _check_processes(suite, cluster)
    if port_range is not None:
        local = dataclasses.replace(_local(settings), ports=PortRange.parse(port_range))
        settings = dataclasses.replace(settings, host=local)
    if cluster is None:
        return measure(settings)
    if cluster.rank:
        return _serve(cluster, suite.source.file, output_directory, settings)
    token = given_token(os.environ)
    hosts = ClusterHosts(
        cluster,
        RunDirectory(output_directory),
        equal=equal_everywhere(),
        suite=suite.source.file,
        own=_local(settings),
        say=_say,
        host_wait_s=host_wait,
    )
    with hosts.listening(token):
        try:
            hosts.await_all()
            hosts.code = measure(dataclasses.replace(settings, host=hosts))
        except UserError:
            hosts.code = _EXIT_INVALID
            raise
    return hosts.code


def _check_processes(suite: LoadedSuite, cluster: Cluster | None) -> None:
    """Checks that devices which several hosts share are used by all of them.

    Raises:
        UserError: A point would wait for ever.
    """
    from orbax_bench_core.config import ARMS, UserError
    from orbax_bench_core.execute import check_proxy, on_pathways, tpu_hosts

    own = suite.suite.execution.processes
    of_arms = (suite.suite.arm(name).processes for name in ARMS)
    counts = sorted({*own, *(count for count in of_arms if count is not None)})
    hosts = tpu_hosts(os.environ) if cluster is None else cluster.tpu_hosts
    if on_pathways(os.environ) and counts != [1]:
        problem = (
            f"JAX_PLATFORMS=proxy is Pathways, where one process has the devices of all hosts: a "
            f"point needs 1 process, and some have {counts[-1]}"
        )
    elif hosts > 1 and any(count % hosts for count in counts):
        count = next(count for count in counts if count % hosts)
        problem = (
            f"a point with processes={count} on a TPU slice of {hosts} hosts: libtpu waits for all "
            f"of them, so a point needs {hosts} processes, one on each host"
        )
    else:
        check_proxy(os.environ)
        return
    raise UserError(suite.source.problem(problem, ("execution", "processes")))


def _serve(cluster: Cluster, suite: str, output_directory: str, settings: RunSettings) -> int:
    """Runs an agent until it ends or is told to, and returns its exit code."""
    from orbax_bench_core.execute import Agent, equal_everywhere, given_token
    from orbax_bench_core.records import RunDirectory

    agent = Agent(
        cluster,
        RunDirectory(output_directory),
        suite=suite,
        equal=equal_everywhere(),
        token=given_token(os.environ),
        local=_local(settings),
        say=_say,
    )
    # A host that is preempted is told so by SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return agent.run()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


def _local(settings: RunSettings) -> LocalHost:
    from orbax_bench_core.execute import LocalHost

    assert isinstance(settings.host, LocalHost)
    return settings.host


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
