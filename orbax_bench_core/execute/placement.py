"""Devices: those that hosts share, those that workers were promised, and Pathways' proxy."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbax_bench_core.config import ARMS
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.cluster import Cluster
from orbax_bench_core.execute.variables import on_pathways, tpu_hosts
from orbax_bench_core.provenance import UNKNOWN, image_that_runs
from orbax_bench_core.worker import Ready

if TYPE_CHECKING:
    from orbax_bench_core.config import LoadedSuite


def check_placement(suite: LoadedSuite, cluster: Cluster | None) -> None:
    """Checks that devices which several hosts share are used by all of them.

    Raises:
        UserError: A point leaves out hosts that share a slice, or has several processes on
            Pathways, or the proxy of Pathways cannot be reached.
    """
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


_TARGET = "JAX_BACKEND_TARGET"
_PATIENCE = "PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS"
_WAIT_S = 10.0
"""Seconds for which the proxy of Pathways is waited for, unless its own variable says more."""
_POLL_S = 0.5
_TARGET_FORM = re.compile(r"(?:grpc://)?\[?([^\]/]+?)\]?:(\d+)/?")


def check_proxy(environment: Mapping[str, str], within_s: float | None = None) -> None:
    """Checks that what JAX needs on Pathways is there; elsewhere it does nothing.

    Raises:
        UserError: The client is not installed, the address of the proxy is missing, or nothing
            answers there.
    """
    if not on_pathways(environment):
        return
    platforms, target = environment["JAX_PLATFORMS"], environment.get(_TARGET, "")
    found = _TARGET_FORM.fullmatch(target)
    if found is None:
        given = f"is {target!r}" if target else "is not set"
        raise UserError(
            f"JAX_PLATFORMS={platforms} is Pathways, and {_TARGET} {given}: give the address of "
            "its proxy, such as grpc://127.0.0.1:29000, or another JAX_PLATFORMS"
        )
    if importlib.util.find_spec("pathwaysutils") is None:
        raise UserError(
            f"JAX_PLATFORMS={platforms} is Pathways, and its client library pathwaysutils is not "
            "installed; install orbax-bench[pathways]"
        )
    within_s = _patience(environment) if within_s is None else within_s
    deadline = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((found[1], int(found[2])), timeout=within_s).close()
        except OSError as error:
            if time.monotonic() + _POLL_S > deadline:
                raise UserError(
                    f"JAX_PLATFORMS={platforms} is Pathways, and its proxy at {target} does not "
                    f"answer within {within_s:g} s: {error}; start it, or correct {_TARGET}"
                ) from None
        else:
            return
        time.sleep(_POLL_S)


def _patience(environment: Mapping[str, str]) -> float:
    try:
        return float(environment.get(_PATIENCE) or _WAIT_S)
    except ValueError:
        given = environment[_PATIENCE]
        raise UserError(f"{_PATIENCE}: expected a number of seconds, got {given!r}") from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExpectedDevices:
    """Devices that every group of workers must have, asked for as `said`, such as `tpu:v5e:8`."""

    said: str
    platform: str  # JAX's name
    kind: str = ""  # a pattern for its kind of each device; empty for any
    count: int | None = None  # over all processes; None for any number

    def check(self, ready: Mapping[int, Ready]) -> None:
        """Refuses workers that have other devices.

        Raises:
            UserError: JAX has another platform, kind or number of devices than was expected.
        """
        # Without an accelerator, or in an image that has no library for it, JAX takes the CPU and
        # says so in a log only: the figures would be those of another machine.
        for host, said in sorted(ready.items()):
            devices = said.provenance.get("devices", {})
            kind = str(devices.get("kind", UNKNOWN))
            if (
                said.platform == self.platform
                and (not self.kind or re.fullmatch(self.kind, kind))
                and self.count in (None, said.device_count)
            ):
                continue
            where = f" on host {host}" if len(ready) > 1 else ""
            image = image_that_runs()
            raise UserError(
                f"expected {self.said}, and JAX found {said.device_count} x {said.platform} "
                f"({kind}){where}: nothing was measured; run it "
                + (f"in another image than {image}, " if image != UNKNOWN else "in an image ")
                + "with the libraries of that accelerator, on a machine that has it"
            )
