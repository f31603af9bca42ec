"""Place of this process among the hosts of a cluster, as the variables of its launcher tell it.

A launcher starts the same command on every host, and tells each of them by its variables which one
it is. JAX reads them too, but only a process that imports JAX can ask it.
"""

import dataclasses
import functools
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.config import MAX_PROCESSES
from orbax_bench_core.errors import UserError, shown

_HOST = "GCE_METADATA_HOST"
_SERVER = "169.254.169.254"
"""Address of `metadata.google.internal`: elsewhere, looking for the name can take many seconds."""

_PATH = "/computeMetadata/v1/instance/attributes/"
_FLAVOR: Final = {"Metadata-Flavor": "Google"}
_TIMEOUT_S = 1.0
_MOST_BYTES = 2**20
_PASSING: Final = (429, 500, 502, 503, 504)
WAIT_S = 600.0
"""How long a server that is starting is waited for: as long as hosts may take to join."""
_PAUSE_S = 1.0
_DEVICES = ("accel*", "vfio")


def has_tpu_devices() -> bool:
    """Returns whether this machine has devices that may be TPUs."""
    return any(any(Path("/dev").glob(pattern)) for pattern in _DEVICES)


def server(environment: Mapping[str, str]) -> str:
    """Returns where the metadata server is, as `host` or `host:port`."""
    return environment.get(_HOST) or _SERVER


def attribute(key: str, environment: Mapping[str, str], *, expected: bool = False) -> str | None:
    """Returns an attribute of this machine; None for one that it does not have."""
    deadline, told = time.monotonic() + WAIT_S, False
    while True:
        try:
            return _ask(key, environment)
        except _NoServer:
            raise
        except OSError as error:
            starting = expected or isinstance(error, _Starting)
            if not starting or time.monotonic() > deadline:
                raise
            if not told:
                where = server(environment)
                print(f"waiting for the metadata server at {where}: {error}", file=sys.stderr)
                told = True
            time.sleep(_PAUSE_S)


class _Starting(ConnectionError):
    """The server cannot answer yet."""


class _NoServer(ConnectionError):
    """What answers is no metadata server."""


def _ask(key: str, environment: Mapping[str, str]) -> str | None:
    import http.client

    connection = http.client.HTTPConnection(server(environment), timeout=_TIMEOUT_S)
    try:
        connection.request("GET", _PATH + key, headers=dict(_FLAVOR))
        answer = connection.getresponse()
        if answer.status in _PASSING:
            raise _Starting(f"it answers {answer.status} for {key}")
        if answer.headers.get("Metadata-Flavor") != "Google":
            raise _NoServer("what answers there is no metadata server of Google Cloud")
        text = answer.read(_MOST_BYTES).decode()
        if answer.status == http.client.NOT_FOUND:
            return None
        if answer.status != http.client.OK:
            raise _NoServer(f"it answers {answer.status} for {key}")
    except http.client.RemoteDisconnected:
        raise  # it may be starting
    except (http.client.HTTPException, UnicodeDecodeError) as error:
        raise _NoServer(f"it answers what cannot be read: {error}") from None
    finally:
        connection.close()
    return text.strip()


def worker_addresses(endpoints: str) -> list[str]:
    """Returns the addresses in `worker-network-endpoints`, in the order of the slice."""
    # Newer machines list `address,address`, older ones `name:id:address,...`.
    entries = [entry.strip() for entry in endpoints.split(",") if entry.strip()]
    return [entry.split(":", 2)[2] if entry.count(":") == 2 else entry for entry in entries]


def setting(key: str, text: str) -> str:
    """Returns a value of `tpu-env`, whose lines are `KEY: 'value'`; empty if it has none."""
    found = re.search(rf"^{re.escape(key)}\s*:\s*(.*?)\s*$", text, re.MULTILINE)
    return "" if found is None else found[1].strip("'\"")


TOKEN: Final = "ORBAX_BENCH_TOKEN"  # noqa: S105 - the name of a variable
"""Variable of the secret that hosts of one run share; without it, a file in the run directory."""

SWITCH: Final = "ORBAX_BENCH_CLUSTER"
"""Variable that says whether there is a cluster: `none`, or the value below."""
TPU_VM: Final = "tpu-vm"
HEAD_HOST: Final = "ORBAX_BENCH_HEAD_HOST"
"""Variable of the name or address of host 0, where that of the launcher cannot be reached."""
OWN: Final = ("ORBAX_BENCH_HEAD", "ORBAX_BENCH_HOST", "ORBAX_BENCH_NUM_HOSTS")
"""Variables of the address of host 0, of the rank of this host, and of the number of hosts."""
_HOSTS_PER_JOB = "ORBAX_BENCH_HOSTS_PER_JOB"
_JOB = "ORBAX_BENCH_JOB_INDEX"
_POD = "JOB_COMPLETION_INDEX"
_JAX = ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
_JAX_PORT = "JAX_COORDINATOR_PORT"
NOTIFY: Final = "ORBAX_BENCH_NOTIFY"
"""Variable with the address that is notified of verdicts, which is a secret."""
NOTIFY_STATE: Final = "ORBAX_BENCH_NOTIFY_STATE"
"""Variable with the folder of last states, where that is not the one beside the run directory."""
_PRIVATE = re.compile(
    r"ORBAX_BENCH_(?:HEAD|HEAD_HOST|HOST|NUM_HOSTS|HOSTS_PER_JOB|JOB_INDEX|CLUSTER|TOKEN"
    r"|NOTIFY|NOTIFY_STATE)"
    r"|JAX_COORDINATOR_(?:ADDRESS|PORT)|JAX_NUM_PROCESSES|JAX_PROCESS_ID|CLUSTER_SPEC"
    r"|OMPI_.*|PMIX_.*|JOB_COMPLETION_INDEX"
    r"|SLURM_(?:PROCID|LOCALID|NODEID|NTASKS|NPROCS|STEP_NODELIST|STEP_NUM_TASKS)"
)
"""Variables that say which one of several this process is. A worker is told that by its setup, and
would otherwise wait for peers that never come. Those of TPUs stay: libtpu reads them. The address
to notify is a secret that no worker needs."""

HEAD_PORT: Final = 8463
"""Port of process 0 when the launcher names none; libtpu takes 8431, 8471 and 8482."""
_FIRST_DYNAMIC_PORT = 61440
_SPREAD = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """Place of this process among the hosts of a run."""

    found: str  # whose variables told it, for people
    rank: int  # index of this host; 0 is the one that orchestrates
    size: int  # how many hosts there are, at least 2
    head: str  # name or address of host 0
    port: int  # port at which host 0 listens for the others
    # how many hosts have the TPUs of a slice, which must be used together; 0 where no TPUs are told
    # of
    tpu_hosts: int = 0

    @property
    def address(self) -> str:
        """Address of host 0, as `host:port`."""
        return f"[{self.head}]:{self.port}" if ":" in self.head else f"{self.head}:{self.port}"

    @property
    def said(self) -> str:
        """One line for people."""
        return f"cluster: {self.found}, host {self.rank} of {self.size}, head {self.address}"


Source = Callable[[Mapping[str, str]], Cluster | None]
"""Reads the place of this process from the variables of one launcher."""


def on_pathways(environment: Mapping[str, str]) -> bool:
    """Returns whether JAX is told to run on Pathways, where one process has the devices of all."""
    return "proxy" in jax_platforms(environment)


def without_cluster(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment without the variables that give a process its place, and no token."""
    return {name: value for name, value in environment.items() if _PRIVATE.fullmatch(name) is None}


def _own(environment: Mapping[str, str]) -> Cluster | None:
    return _named("ORBAX_BENCH_*", OWN, _numbered_by_jobs(environment))


def _numbered_by_jobs(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Returns an environment with the rank of a pod of several Kubernetes jobs of equal size."""
    # Kubernetes numbers the pods of each job from 0 on, and a set of jobs has one for each slice.
    rank = OWN[1]
    if rank in environment or not environment.get(_HOSTS_PER_JOB):
        return environment
    each, job, pod = (
        number(name, environment.get(name, "")) for name in (_HOSTS_PER_JOB, _JOB, _POD)
    )
    return {**environment, rank: str(job * each + pod)}


def _jax(environment: Mapping[str, str]) -> Cluster | None:
    return _named("JAX_*", _JAX, environment, port=environment.get(_JAX_PORT, ""))


def _named(
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


def _vertex(environment: Mapping[str, str]) -> Cluster | None:
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


def _tpu(environment: Mapping[str, str]) -> Cluster | None:
    names, slices = tpu_host_names(environment), num_slices(environment)
    if not names or not environment.get("TPU_WORKER_ID"):
        return None
    head = environment.get("MEGASCALE_COORDINATOR_ADDRESS") or names[0]
    rank, size = tpu_rank(environment, len(names)), len(names) * slices
    return Cluster(found="TPU slice", rank=rank, size=size, head=_split(head)[0], port=HEAD_PORT)


def _open_mpi(environment: Mapping[str, str]) -> Cluster | None:
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


def _slurm(environment: Mapping[str, str]) -> Cluster | None:
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


def _tpu_vm(environment: Mapping[str, str]) -> Cluster | None:
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


_MOST_DIGITS: Final = 18
"""Characters of a number: a rank, a size or a port has 6 at most."""

STATED: Final[tuple[Source, ...]] = (_own, _jax)
"""Sources of variables that somebody may set by hand."""

LAUNCHERS: Final[tuple[Source, ...]] = (_vertex, _tpu, _open_mpi, _slurm)
"""Sources of variables that a launcher alone sets; TPUs before Slurm, for they know their order."""

SOURCES: Final[tuple[Source, ...]] = (*STATED, *LAUNCHERS, _tpu_vm)
"""All sources, in the order in which they are asked: the first that tells counts."""


def jax_platforms(environment: Mapping[str, str]) -> list[str]:
    """Returns the platforms that JAX is told to use, in order; empty if it may choose."""
    given = environment.get("JAX_PLATFORMS", "").split(",")
    return [platform.strip() for platform in given if platform.strip()]


def tpu_rank(environment: Mapping[str, str], hosts_per_slice: int) -> int:
    """Returns the rank of this host among those of all slices."""
    slice_ = environment.get("MEGASCALE_SLICE_ID") or "0"
    before = hosts_per_slice * number("MEGASCALE_SLICE_ID", slice_)
    return before + number("TPU_WORKER_ID", environment["TPU_WORKER_ID"])


def tpu_host_names(environment: Mapping[str, str]) -> list[str]:
    """Returns the names of the hosts of the TPU slice that this host is in."""
    names = environment.get("TPU_PROCESS_ADDRESSES") or environment.get("TPU_WORKER_HOSTNAMES", "")
    return [name.strip() for name in names.split(",") if name.strip()]


def num_slices(environment: Mapping[str, str]) -> int:
    """Returns the number of TPU slices of the job."""
    return number("MEGASCALE_NUM_SLICES", environment.get("MEGASCALE_NUM_SLICES") or "1")


def _split(address: str) -> tuple[str, str]:
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::(.*))?", address)
    if bracketed is not None:
        return bracketed[1], bracketed[2] or ""
    if address.count(":") > 1:
        return address, ""  # version 6 of the Internet Protocol, without a port
    head, _, port = address.partition(":")
    return head, port


def number(name: str, text: str) -> int:
    """Returns the number that a variable holds."""
    if not text.strip().isdecimal() or len(text) > _MOST_DIGITS:
        raise wrong_variables(f"{name}: expected a number, got {shown(text)}")
    return int(text)


def wrong_variables(message: str) -> UserError:
    """Returns the error of what variables say, with the way to do without them."""
    return UserError(f"{message}; or measure on this host alone with --no-cluster")


_OFF = ("none", "off", "0")
_PORTS = 65_536


def detect_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """Returns the cluster that the variables of a launcher tell of."""
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


def tpu_hosts(environment: Mapping[str, str]) -> int:
    """Returns how many hosts have the TPUs that a process here would open; 0 for none."""
    # All of them must open them together: libtpu waits for the others.
    names, platforms = tpu_host_names(environment), jax_platforms(environment)
    if not names or (platforms and "tpu" not in platforms):
        return 0
    return len(names) * num_slices(environment)


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
