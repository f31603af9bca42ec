"""Detection of the cluster that this process is a host of, and checks of what its variables say."""

import dataclasses
from collections.abc import Mapping

from orbax_bench_core.config import MAX_PROCESSES
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.cluster_sources import LAUNCHERS, SOURCES, STATED, Source
from orbax_bench_core.execute.variables import (
    HEAD_HOST,
    OWN,
    SWITCH,
    TPU_VM,
    num_slices,
    number,
    on_pathways,
    tpu_host_names,
    tpu_hosts,
    tpu_rank,
    wrong_variables,
)

_OFF = ("none", "off", "0")
_PORTS = 65_536
"""One more than the highest port, whose number has 16 bits."""


def detect_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """Returns the cluster that the variables of a launcher tell of.

    None where this process is alone: no launcher tells of others, it is switched off, or one
    process of Pathways has all devices.

    Raises:
        UserError: Variables contradict each other, or name no place, port or size that there can
            be.
    """
    switch = environment.get(SWITCH, "").lower()
    if switch not in ("", *_OFF, TPU_VM):
        raise wrong_variables(f"{SWITCH}={switch}: give none for this host alone, or {TPU_VM}")
    # The one process of Pathways has all devices: there is nobody to join.
    if switch in _OFF or on_pathways(environment):
        return None
    for source in SOURCES:
        cluster = source(environment)
        if cluster is not None:
            if not 0 <= cluster.rank < cluster.size:
                raise wrong_variables(
                    f"{cluster.found} says that this is host {cluster.rank} of {cluster.size}; "
                    f"hosts are numbered from 0 to {cluster.size - 1}"
                )
            if not 0 < cluster.port < _PORTS or cluster.size > MAX_PROCESSES:
                raise wrong_variables(
                    f"{cluster.found} says {cluster.size} hosts and port {cluster.port}; there are "
                    f"{MAX_PROCESSES:,} hosts at most, and ports below {_PORTS:,}"
                )
            _check_expected(cluster, environment)
            if cluster.size == 1:
                return None
            _check_tpu_order(cluster, environment)
            _check_size(cluster, source, environment)
            return dataclasses.replace(
                cluster,
                head=environment.get(HEAD_HOST) or cluster.head,
                tpu_hosts=cluster.tpu_hosts or tpu_hosts(environment),
            )
    _check_expected(None, environment)
    return None


def _check_size(cluster: Cluster, source: Source, environment: Mapping[str, str]) -> None:
    """Checks that variables of somebody's own name as many hosts as the launcher has started."""
    if source not in STATED:
        return
    for launcher in LAUNCHERS:
        try:
            started = launcher(environment)
        except UserError:
            continue  # what it would need beside them
        if started is not None and started.size not in (1, cluster.size):
            raise wrong_variables(
                f"{cluster.found} says that there are {cluster.size} hosts, and {started.found} "
                f"that there are {started.size}: start the command on as many hosts as it is told"
            )


def _check_expected(cluster: Cluster | None, environment: Mapping[str, str]) -> None:
    name = OWN[2]
    expected = environment.get(name, "")
    if not expected or environment.get(OWN[0]):
        return
    size = 1 if cluster is None else cluster.size
    if number(name, expected) == size:
        return
    told = "no variables tell of others" if cluster is None else f"{cluster.found} says {size}"
    raise wrong_variables(
        f"{name}={expected}, and {told}: a host that knows nothing of others would measure alone"
    )


def _check_tpu_order(cluster: Cluster, environment: Mapping[str, str]) -> None:
    """Checks that a slice of TPUs numbers its hosts as the launcher does."""
    names = tpu_host_names(environment)
    hosts = len(names) * num_slices(environment)
    if not environment.get("TPU_WORKER_ID") or hosts == 1:
        return
    if not names and environment.get("MEGASCALE_SLICE_ID"):
        return  # how many hosts the slices before this one have is not known
    rank = tpu_rank(environment, len(names))
    if rank != cluster.rank:
        raise wrong_variables(
            f"{cluster.found} says that this is host {cluster.rank}, and TPU_WORKER_ID="
            f"{environment['TPU_WORKER_ID']} that it is host {rank} of the slice: start each host "
            "with the rank that its TPU has"
        )
