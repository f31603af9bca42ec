"""Measurement on all hosts of a cluster: process 0 measures, and every other host serves it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.detect import detect_cluster
from orbax_bench_core.execute.hosts import (
    HOST_WAIT_S,
    Agent,
    ClusterHosts,
    ClusterRun,
    LocalHost,
    equal_everywhere,
    given_token,
)
from orbax_bench_core.execute.placement import check_placement
from orbax_bench_core.execute.session import DEFAULTS, RunSettings, Say
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.records import RunDirectory

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite


def on_hosts(
    cluster: Cluster | None,
    directory: RunDirectory,
    measure: Callable[[RunSettings], int],
    *,
    suite: LoadedSuite,
    settings: RunSettings,
    say: Say,
    host_wait_s: float = HOST_WAIT_S,
    part: str = "",
) -> int:
    """Measures on one host, or on all hosts of a cluster together.

    Args:
        cluster: The place of this host, or None for the only one.
        directory: The run directory, which all hosts see.
        measure: Measures on the host of the settings that it is given, and returns an exit code.
        suite: The suite, which the other hosts are sent.
        settings: How repeats are run.
        say: Takes lines for people.
        host_wait_s: Seconds for which a host that is lost is waited for.
        part: What tells this run from others that meet in the same folder; empty for the only one.

    Returns:
        The exit code of the run: that of process 0 on every host.
    """
    # The others join once, and serve as many sessions as `measure` has below their common folder.
    check_placement(suite, cluster)
    placed = dataclasses.replace(settings, placed=True)
    if cluster is None:
        return measure(placed)
    if cluster.rank:
        return serve(cluster, directory, suite.source.file, say, settings=settings, part=part)
    run = _cluster_run(cluster, directory, suite.source.file, say, part, text=suite.text)
    hosts = ClusterHosts(run, own=_local(settings), host_wait_s=host_wait_s)
    with hosts.listening(given_token(os.environ)):
        try:
            hosts.await_all()
            hosts.code = measure(dataclasses.replace(placed, host=hosts))
        except UserError:
            hosts.code = Exit.INVALID
            raise
        except KeyboardInterrupt:
            hosts.code = Exit.INTERRUPTED
            raise
    return hosts.code


def serve(
    cluster: Cluster,
    directory: RunDirectory,
    suite: str,
    say: Say,
    *,
    settings: RunSettings = DEFAULTS,
    part: str = "",
) -> int:
    """Serves process 0 from another host until the run ends; see `on_hosts`.

    Returns:
        The exit code of process 0; 75 if contact with it was lost.
    """
    run = _cluster_run(cluster, directory, suite, say, part)
    try:
        return Agent(run, token=given_token(os.environ), local=_local(settings)).run()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _cluster_run(
    cluster: Cluster, directory: RunDirectory, suite: str, say: Say, part: str, *, text: str = ""
) -> ClusterRun:
    """Describes a run for which hosts meet that have the same versions and, in a step, points."""
    equal = {**equal_everywhere(), **({"the point": part} if part else {})}
    return ClusterRun(
        cluster=cluster,
        directory=directory,
        equal=equal,
        say=say,
        suite=suite,
        text=text,
        part=part,
    )


def refuse_several_hosts(what: str) -> None:
    """Refuses what measures on one host where a launcher has started it on several.

    Raises:
        UserError: A launcher has started this command on several hosts.
    """
    # Otherwise each of them would measure into the same folder.
    cluster = detect_cluster(os.environ)
    if cluster is not None:
        raise UserError(
            f"{cluster.found} says that this is host {cluster.rank} of {cluster.size}, and {what} "
            "measures on one host: on all of them together measure `orbax-bench run`, `ab`, "
            "`soak`, `recovery`, `async-study`, `calibrate --suite`, `bisect`, `upgrade` and the "
            "step run-sweep-point; on this host alone it measures with ORBAX_BENCH_CLUSTER=none"
        )


def _local(settings: RunSettings) -> LocalHost:
    assert isinstance(settings.host, LocalHost)
    return settings.host
