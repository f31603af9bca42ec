"""Hosts of a run: process 0 orchestrates, and the same command elsewhere is an agent."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Sequence
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
        UserError: The suite is invalid, or needs what several hosts do not have yet.
    """
    from orbax_bench_core.config import UserError, load_suite

    loaded = load_suite(path, override)
    if cluster is None:
        return loaded
    if loaded.suite.environments:
        raise UserError(
            loaded.source.problem(
                f"environments are made on one host only, and this run has {cluster.size}: put the "
                "versions into the image of every host, or run it with --no-cluster",
                ("environments",),
            )
        )
    if "processes" in loaded.suite.execution.model_fields_set:
        return loaded
    return load_suite(path, [*override, f"execution.processes={cluster.size}"])


def on_hosts(
    cluster: Cluster | None,
    suite: LoadedSuite,
    output_directory: str,
    *,
    settings: RunSettings,
    host_wait: float,
    measure: Callable[[RunSettings], int],
) -> int:
    """Measures on one host, or on all hosts of a cluster.

    Args:
        cluster: The place of this process; None measures here alone.
        suite: The suite.
        output_directory: The run directory, which all hosts share.
        settings: How to measure; its host starts the workers of this machine.
        host_wait: Seconds for which a lost host is waited for.
        measure: Measures with the settings that it is given, on process 0.

    Returns:
        The exit code, which is the same on every host.

    Raises:
        UserError: This host cannot join, or others have not.
    """
    from orbax_bench_core.config import UserError
    from orbax_bench_core.execute import Agent, ClusterHosts, equal_everywhere, given_token
    from orbax_bench_core.records import RunDirectory

    if cluster is None:
        return measure(settings)
    directory = RunDirectory(output_directory)
    token, equal = given_token(os.environ), equal_everywhere(suite.text)
    if cluster.rank:
        agent = Agent(
            cluster, directory, equal=equal, token=token, local=_local(settings), say=_say
        )
        return _serve(agent.run)
    hosts = ClusterHosts(
        cluster,
        directory,
        equal=equal,
        own=_local(settings),
        say=_say,
        host_wait_s=host_wait,
    )
    _hear_notices()
    with hosts.listening(token):
        try:
            hosts.await_all()
            hosts.code = measure(dataclasses.replace(settings, host=hosts))
        except UserError:
            hosts.code = _EXIT_INVALID
            raise
        except KeyboardInterrupt:
            hosts.code = _EXIT_INTERRUPTED
            raise
    return hosts.code


def _serve(run: Callable[[], int]) -> int:
    """Runs an agent until it ends or is told to."""
    _hear_notices()
    try:
        return run()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED


def _hear_notices() -> None:
    """Has SIGTERM interrupt this process: a host that is preempted is told so by it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _local(settings: RunSettings) -> LocalHost:
    from orbax_bench_core.execute import LocalHost

    assert isinstance(settings.host, LocalHost)
    return settings.host


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
