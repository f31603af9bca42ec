"""Variables by which launchers, JAX and users tell a process its place, and their values."""

import re
from collections.abc import Mapping
from typing import Final

from orbax_bench_core.errors import UserError, shown

TOKEN: Final = "ORBAX_BENCH_TOKEN"  # noqa: S105 - the name of a variable
"""Variable of the secret that hosts of one run share; without it, a file in the run directory."""

SWITCH: Final = "ORBAX_BENCH_CLUSTER"
"""Variable that says whether there is a cluster: `none`, or the value below."""
TPU_VM: Final = "tpu-vm"
HEAD_HOST: Final = "ORBAX_BENCH_HEAD_HOST"
"""Variable of the name or address of host 0, where that of the launcher cannot be reached."""
OWN: Final = ("ORBAX_BENCH_HEAD", "ORBAX_BENCH_HOST", "ORBAX_BENCH_NUM_HOSTS")
"""Variables of the address of host 0, of the rank of this host, and of the number of hosts."""

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

_MOST_DIGITS: Final = 18
"""Characters of a number: a rank, a size or a port has 6 at most."""


def on_pathways(environment: Mapping[str, str]) -> bool:
    """Returns whether JAX is told to run on Pathways, where one process has the devices of all."""
    return "proxy" in jax_platforms(environment)


def without_cluster(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns an environment without the variables that give a process its place, and no token."""
    return {name: value for name, value in environment.items() if _PRIVATE.fullmatch(name) is None}


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


def number(name: str, text: str) -> int:
    """Returns the number that a variable holds.

    Raises:
        UserError: It holds none.
    """
    if not text.strip().isdecimal() or len(text) > _MOST_DIGITS:
        raise wrong_variables(f"{name}: expected a number, got {shown(text)}")
    return int(text)


def wrong_variables(message: str) -> UserError:
    """Returns the error of what variables say, with the way to do without them."""
    return UserError(f"{message}; or measure on this host alone with --no-cluster")


def tpu_hosts(environment: Mapping[str, str]) -> int:
    """Returns how many hosts have the TPUs that a process here would open; 0 for none."""
    # All of them must open them together: libtpu waits for the others.
    names, platforms = tpu_host_names(environment), jax_platforms(environment)
    if not names or (platforms and "tpu" not in platforms):
        return 0
    return len(names) * num_slices(environment)
