"""Sources of a cluster: a function for each launcher reads the place of this process."""

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.metadata_server import (
    attribute,
    has_tpu_devices,
    server,
    setting,
    worker_addresses,
)
from orbax_bench_core.execute.variables import (
    HEAD_HOST,
    OWN,
    SWITCH,
    TPU_VM,
    jax_platforms,
    num_slices,
    number,
    tpu_host_names,
    tpu_rank,
    wrong_variables,
)

_HOSTS_PER_JOB = "ORBAX_BENCH_HOSTS_PER_JOB"
_JOB = "ORBAX_BENCH_JOB_INDEX"
_POD = "JOB_COMPLETION_INDEX"
_JAX = ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
_JAX_PORT = "JAX_COORDINATOR_PORT"

HEAD_PORT: Final = 8463
"""Port of process 0 when the launcher names none; libtpu takes 8431, 8471 and 8482."""
_FIRST_DYNAMIC_PORT = 61440
_SPREAD = 4096
"""Ports that jobs are spread over: JAX derives the same one from the id of a job."""

Source = Callable[[Mapping[str, str]], Cluster | None]
"""Reads the place of this process from the variables of one launcher."""


def _read_own(environment: Mapping[str, str]) -> Cluster | None:
    return _read_variables("ORBAX_BENCH_*", OWN, _number_by_jobs(environment))


def _number_by_jobs(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Returns an environment with the rank of a pod of several Kubernetes jobs of equal size."""
    # Kubernetes numbers the pods of each job from 0 on, and a set of jobs has one for each slice.
    rank = OWN[1]
    if rank in environment or not environment.get(_HOSTS_PER_JOB):
        return environment
    each, job, pod = (
        number(name, environment.get(name, "")) for name in (_HOSTS_PER_JOB, _JOB, _POD)
    )
    return {**environment, rank: str(job * each + pod)}


def _read_jax(environment: Mapping[str, str]) -> Cluster | None:
    return _read_variables("JAX_*", _JAX, environment, port=environment.get(_JAX_PORT, ""))


def _read_variables(
    found: str, names: tuple[str, str, str], environment: Mapping[str, str], port: str = ""
) -> Cluster | None:
    """Reads address, rank and size from three variables, which belong together."""
    address, rank, size = (environment.get(name, "") for name in names)
    if not address:
        return None
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise wrong_variables(f"{names[0]} is set, and {' and '.join(missing)} not")
    head, own_port = _split(address)
    if not (port or own_port):
        also = f", or set {_JAX_PORT}" if names is _JAX else ""
        raise wrong_variables(f"{names[0]}={address} has no port: write it as host:port{also}")
    return Cluster(
        found=found,
        rank=number(names[1], rank),
        size=number(names[2], size),
        head=head,
        port=number(_JAX_PORT if port else names[0], port or own_port),
    )


def _read_vertex(environment: Mapping[str, str]) -> Cluster | None:
    text = environment.get("CLUSTER_SPEC", "")
    if not text:
        return None
    try:
        given: dict[str, Any] = json.loads(text)
        pools = [given["cluster"].get(f"workerpool{pool}", []) for pool in (0, 1)]
        kind, index = given["task"]["type"], int(given["task"]["index"])
        head = str(pools[0][0])
        size = sum(map(len, pools))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise wrong_variables(f"CLUSTER_SPEC cannot be read: {text[:200]}") from None
    # A slice of TPUs is one replica to Vertex AI; parameter servers and evaluators are no hosts.
    if size == 1 or kind not in ("workerpool0", "workerpool1"):
        return None
    rank = index + (len(pools[0]) if kind == "workerpool1" else 0)
    return Cluster(found="Vertex AI", rank=rank, size=size, head=_split(head)[0], port=HEAD_PORT)


def _read_tpu(environment: Mapping[str, str]) -> Cluster | None:
    names, slices = tpu_host_names(environment), num_slices(environment)
    if not names or not environment.get("TPU_WORKER_ID"):
        return None
    head = environment.get("MEGASCALE_COORDINATOR_ADDRESS") or names[0]
    rank, size = tpu_rank(environment, len(names)), len(names) * slices
    return Cluster(found="TPU slice", rank=rank, size=size, head=_split(head)[0], port=HEAD_PORT)


def _read_open_mpi(environment: Mapping[str, str]) -> Cluster | None:
    size = environment.get("OMPI_COMM_WORLD_SIZE", "")
    rank = environment.get("OMPI_COMM_WORLD_RANK", "")
    if not (rank and size) or size == "1":
        return None
    uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
    address = re.search(r"tcp6?://\[?([^,:;\]]+(?::[^,;\]]+(?=\]))?)", uri)
    head = environment.get(HEAD_HOST) or (address[1] if address else "")
    if not head:
        raise wrong_variables(
            "Open MPI does not say on which host rank 0 runs; name it with "
            f"`mpirun -x {HEAD_HOST}=...`"
        )
    job = re.match(r"\d+", uri)
    of_job = number("OMPI_MCA_orte_hnp_uri", job[0]) if job else 0
    port = _FIRST_DYNAMIC_PORT + of_job // _SPREAD % _SPREAD
    return Cluster(
        found="Open MPI",
        rank=number("OMPI_COMM_WORLD_RANK", rank),
        size=number("OMPI_COMM_WORLD_SIZE", size),
        head=head,
        port=port,
    )


def _read_slurm(environment: Mapping[str, str]) -> Cluster | None:
    # A batch script has a rank and a size as well, and runs once: only a step has a list of nodes.
    nodes, rank = environment.get("SLURM_STEP_NODELIST", ""), environment.get("SLURM_PROCID", "")
    size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS", "")
    if not (nodes and rank and size) or size == "1":
        return None
    first = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", nodes)
    if first is None:
        raise wrong_variables(f"SLURM_STEP_NODELIST={nodes} names no node")
    job = environment.get("SLURM_JOB_ID", "")
    of_job = number("SLURM_JOB_ID", job) if job.isdecimal() else 0
    return Cluster(
        found="Slurm",
        rank=number("SLURM_PROCID", rank),
        size=number("SLURM_NTASKS", size),
        head=first[1] + (first[2] or ""),
        port=_FIRST_DYNAMIC_PORT + of_job % _SPREAD,
    )


def _read_tpu_vm(environment: Mapping[str, str]) -> Cluster | None:
    asked = environment.get(SWITCH, "").lower() == TPU_VM
    platforms = jax_platforms(environment)
    if not asked and (
        environment.get("TPU_SKIP_MDS_QUERY")
        or not has_tpu_devices()
        or (platforms and "tpu" not in platforms)
    ):
        return None
    try:
        told = functools.partial(attribute, environment=environment, expected=asked)
        worker = told("agent-worker-number")
        endpoints = told("worker-network-endpoints") if worker else None
        tpu_env = (told("tpu-env") or "") if endpoints else ""
    except OSError as error:
        if not asked:
            return None  # a machine elsewhere, whose devices are others
        where = server(environment)
        raise wrong_variables(
            f"{SWITCH}={TPU_VM}, and the metadata server at {where} does not tell the place of "
            f"this host: {error}"
        ) from None
    if not worker or not endpoints:
        if asked:
            raise wrong_variables(
                f"{SWITCH}={TPU_VM}, and the metadata of this host name no TPU worker"
            )
        return None
    names = ("MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID", "MEGASCALE_COORDINATOR_ADDRESS")
    slices, slice_, coordinator = (
        environment.get(name) or setting(name, tpu_env) for name in names
    )
    addresses = worker_addresses(endpoints)
    size = len(addresses) * number(names[0], slices or "1")
    before = len(addresses) * number(names[1], slice_ or "0")
    return Cluster(
        found="TPU VM",
        rank=before + number("agent-worker-number", worker),
        size=size,
        head=_split(coordinator or addresses[0])[0],
        port=HEAD_PORT,
        tpu_hosts=size,
    )


STATED: Final[tuple[Source, ...]] = (_read_own, _read_jax)
"""Sources of variables that somebody may set by hand."""

LAUNCHERS: Final[tuple[Source, ...]] = (_read_vertex, _read_tpu, _read_open_mpi, _read_slurm)
"""Sources of variables that a launcher alone sets; TPUs before Slurm, for they know their order."""

SOURCES: Final[tuple[Source, ...]] = (*STATED, *LAUNCHERS, _read_tpu_vm)
"""All sources, in the order in which they are asked: the first that tells counts."""


def _split(address: str) -> tuple[str, str]:
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::(.*))?", address)
    if bracketed is not None:
        return bracketed[1], bracketed[2] or ""
    if address.count(":") > 1:
        return address, ""  # version 6 of the Internet Protocol, without a port
    head, _, port = address.partition(":")
    return head, port
