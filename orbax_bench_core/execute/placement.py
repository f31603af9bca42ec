"""Processes of points, compared with the devices that several hosts share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from orbax_bench_core.config import ARMS
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster, on_pathways
from orbax_bench_core.execute.detection import tpu_hosts
from orbax_bench_core.execute.pathways import check_proxy

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite


def check_placement(suite: LoadedSuite, cluster: Cluster | None) -> None:
    """Checks that devices which several hosts share are used by all of them."""
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
