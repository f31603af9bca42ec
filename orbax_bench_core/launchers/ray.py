"""Nodes of a Ray cluster: one actor on each, which starts the command and forwards its lines."""

import contextlib
import dataclasses
import logging
import os
import shlex
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import TOKEN
from orbax_bench_core.launchers import ray_host
from orbax_bench_core.launchers.launch import (
    GRACE_S,
    PASSED_ON,
    Launch,
    code_of_run,
    echo,
    environment_of_hosts,
    place_variables,
    say,
)

_RAY_GENERATIONS: Final = {"v5e": "v5litepod"}
"""TPU generations that Ray calls differently."""
_SLICE: Final = "ray.io/tpu-slice-name"
_WORKER: Final = "ray.io/tpu-worker-id"
_RESOURCES: Final = ("CPU", "GPU", "TPU")
_ANSWER_S: Final = 60.0
"""Seconds that actors may take for an answer."""
_KNOCK_S: Final = 10.0
"""Seconds that the address of a cluster may take to answer."""
_POLL_S: Final = 1.0


class RaySettings(ConfigModel):
    """Settings of a start on Ray, which docs/launch/ray.md explains."""

    address: str | None = None
    cpus_per_host: Annotated[float, pydantic.Field(gt=0)] = 1.0
    gpus_per_host: pydantic.NonNegativeInt = 0
    wait_s: Annotated[float, pydantic.Field(gt=0)] = 600.0
    variables: tuple[str, ...] = ()
    program: str | None = None


@dataclasses.dataclass
class _Host:
    """A host: an actor on a node. `lines` is what it prints, and then its exit code."""

    actor: Any
    node: str
    address: str
    port: int
    slice: str = ""
    worker: int = 0
    lines: Any = None
    code: int | None = None
    over: bool = False  # it has ended, or is lost


class Ray:
    """Starts the command in one actor per node, and ends with it.

    Ray only starts: hosts join process 0 by themselves, and their workers are processes of their
    own, so that what a TPU has locked is free again with their end.
    """

    def __init__(self, launch: Launch, settings: RaySettings) -> None:
        """Keeps what is to be started."""
        if launch.image is not None:
            raise UserError(
                "--image: the nodes of a Ray cluster run already, in images of their own; leave it "
                "out"
            )
        self._launch = launch
        self._settings = settings

    def shown(self) -> str:
        """Returns each actor's resources, and the command it starts."""
        launch, place = self._launch, self._settings.address or "that RAY_ADDRESS names, or here"
        if launch.tpu is None:
            group = f"STRICT_SPREAD over {launch.hosts} nodes, each with {_amounts(self._bundle())}"
        else:
            group = f"{launch.slices} x slice_placement_group({self._slice()})"
        variables = " ".join(
            f"{name}={text}" for name, text in place_variables("NODE:PORT", 0, launch.hosts).items()
        )
        return "\n".join(
            (
                f"# Ray cluster: {place}",
                f"# placement group: {group}; waits {self._settings.wait_s:g} s",
                f"# one actor per node; {TOKEN} is a new one; ranks follow {_WORKER} on TPUs",
                f"{variables} {shlex.join(launch.by(self._settings.program))}",
            )
        )

    def start(self) -> int:
        """Starts a host on each node, passes on what they print, and waits for process 0.

        Returns:
            The exit code of process 0.

        Raises:
            UserError: Ray is not installed here.
        """
        try:
            import ray
        except ImportError:
            raise UserError(
                "--on ray needs Ray, in the version that the cluster has: pip install "
                "'orbax-bench[ray]'"
            ) from None
        with contextlib.ExitStack() as clearing:
            self._connect(ray)
            clearing.callback(ray.shutdown)
            hosts = self._hosts(ray, clearing)
            clearing.callback(_stop, ray, hosts)
            self._begin(hosts)
            return self._follow(ray, hosts)

    def _connect(self, ray: Any) -> None:
        address = self._settings.address or os.environ.get("RAY_ADDRESS") or "auto"
        told = signal.getsignal(signal.SIGTERM)
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(
                f"cannot reach a Ray cluster at {address}: {' '.join(_lines(error))}; give --set "
                "address=HOST:PORT, and the same versions of Ray and Python as the cluster has"
            ) from None
        if threading.current_thread() is threading.main_thread():
            # Told to end, Ray would exit at once, and no host be told to.
            signal.signal(signal.SIGTERM, told)

    def _hosts(self, ray: Any, clearing: contextlib.ExitStack) -> list[_Host]:
        """Reserves nodes and makes the actors, and returns them in the order of ranks.

        The bundles of a group are on its nodes in any order. Hosts of a TPU slice have one, which
        JAX expects the ranks to have as well.
        """
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        resources = self._bundle()
        if self._launch.tpu is None:
            group = placement_group([resources] * self._launch.hosts, strategy="STRICT_SPREAD")
            clearing.callback(remove_placement_group, group)
        else:
            whole = self._slices(ray)
            clearing.callback(whole.shutdown)
            group, resources = whole.placement_group, {**whole.bundle_resources}
        self._await(ray, group)
        # Nodes may not have this library: they are sent the class itself, not its name.
        ray.cloudpickle.register_pickle_by_value(ray_host)
        made = ray.remote(
            num_cpus=resources.pop("CPU", 0),
            num_gpus=resources.pop("GPU", 0),
            resources=resources,
            max_restarts=0,
            max_concurrency=4,
        )(ray_host.RayHost)
        strategies = [
            PlacementGroupSchedulingStrategy(group, index) for index in range(self._launch.hosts)
        ]
        actors = [made.options(scheduling_strategy=each).remote() for each in strategies]
        try:
            found = ray.get([actor.where.remote() for actor in actors], timeout=_ANSWER_S)
        except ray.exceptions.RayError as error:
            raise UserError(f"Ray cannot start the hosts: {_lines(error)[0]}") from None
        labels = {node["NodeID"]: node.get("Labels") or {} for node in ray.nodes()}
        hosts = [_Host(actor, *where) for actor, where in zip(actors, found, strict=True)]
        for host in hosts:
            known = labels.get(host.node, {})
            host.slice, host.worker = known.get(_SLICE, ""), int(known.get(_WORKER, 0))
        return sorted(hosts, key=lambda host: (host.slice, host.worker, host.address))

    def _slices(self, ray: Any) -> Any:
        from ray.util.tpu import slice_placement_group

        shape, wait_s = self._launch.tpu, self._settings.wait_s
        assert shape is not None
        try:
            return slice_placement_group(
                **self._slice(), num_slices=self._launch.slices, head_reservation_timeout_s=wait_s
            )
        except (ray.exceptions.RayError, RuntimeError, TimeoutError, ValueError) as error:
            raise UserError(
                f"Ray cannot reserve {self._launch.slices} x TPU {shape} within {wait_s:g} s: "
                f"{error}; {_nodes(ray)}"
            ) from None

    def _slice(self) -> dict[str, Any]:
        shape = self._launch.tpu
        assert shape is not None
        name = shape.generation.name
        return {
            "topology": shape.topology,
            "accelerator_version": _RAY_GENERATIONS.get(name, name),
            "chips_per_vm": shape.chips_per_host,
        }

    def _bundle(self) -> dict[str, float]:
        gpus = self._settings.gpus_per_host
        return {"CPU": self._settings.cpus_per_host, **({"GPU": gpus} if gpus else {})}

    def _await(self, ray: Any, group: Any) -> None:
        """Waits for the nodes, without which a group waits for ever."""
        hosts, wait_s = self._launch.hosts, self._settings.wait_s
        if not group.wait(min(_POLL_S, wait_s)):
            say(f"waiting for {hosts} nodes of Ray that are free; {_nodes(ray)}")
        if not group.wait(wait_s):
            shape = self._launch.tpu
            what = _amounts(self._bundle()) if shape is None else f"a host of TPU {shape}"
            raise UserError(
                f"Ray has not had {hosts} different nodes, each with {what} free, within "
                f"{wait_s:g} s; {_nodes(ray)}"
            )

    def _begin(self, hosts: Sequence[_Host]) -> None:
        launch, given = self._launch, environment_of_hosts()
        names = (TOKEN, *PASSED_ON, *self._settings.variables)
        passed = {name: given[name] for name in names if name in given}
        words, folder = launch.by(self._settings.program), str(Path.cwd())
        slices = list(dict.fromkeys(host.slice or host.node for host in hosts))
        first = hosts[0]
        address = f"[{first.address}]" if ":" in first.address else first.address
        for rank, host in enumerate(hosts):
            sets = passed | place_variables(f"{address}:{first.port}", rank, launch.hosts)
            if launch.slices > 1:
                from ray.util.tpu import get_tpu_coordinator_env_vars

                index = slices.index(host.slice or host.node)
                sets |= get_tpu_coordinator_env_vars(first.address, len(slices), index)
            host.lines = host.actor.run.options(num_returns="streaming").remote(words, sets, folder)

    def _follow(self, ray: Any, hosts: Sequence[_Host]) -> int:
        """Prints what hosts say until process 0 has ended, and the others after it."""
        left = {host.lines: rank for rank, host in enumerate(hosts)}
        until: float | None = None
        while left and (until is None or time.monotonic() < until):
            ready, _ = ray.wait(list(left), timeout=_POLL_S)
            for lines in ready:
                rank = left[lines]
                if not self._heard(ray, rank, hosts[rank]):
                    del left[lines]
            if until is None and hosts[0].over:
                until = time.monotonic() + GRACE_S
        return code_of_run(1 if hosts[0].code is None else hosts[0].code)

    def _heard(self, ray: Any, rank: int, host: _Host) -> bool:
        """Prints the next line of a host; returns whether more may come."""
        try:
            said = ray.get(next(host.lines))
        except ray.exceptions.RayTaskError as error:
            host.over = True
            program = self._launch.by(self._settings.program)[0]
            raise UserError(
                f"a node cannot start `{program}`: {_lines(error)[-1]}; give --set program=... "
                "where nodes have it elsewhere"
            ) from None
        except ray.exceptions.RayError as error:
            host.over = True
            say(f"host {rank}: Ray has lost it at {host.address}: {_lines(error)[0]}")
        else:
            if isinstance(said, int):
                host.code, host.over = said, True
            else:
                echo(rank, said)
        return not host.over


def _knock(address: str) -> None:
    """Connects to a cluster that is given by its address: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()


def _stop(ray: Any, hosts: Sequence[_Host]) -> None:
    """Ends what still runs, kindly at first; what has ended or is lost does not answer."""
    ending = [host.actor.stop.remote(GRACE_S) for host in hosts if not host.over]
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(ending, timeout=GRACE_S + _ANSWER_S)


def _nodes(ray: Any) -> str:
    alive = [node for node in ray.nodes() if node["Alive"]]
    found = (f"{node['NodeManagerAddress']} ({_amounts(node['Resources'])})" for node in alive)
    return f"its {len(alive)} nodes: {', '.join(found)}"


def _amounts(resources: Mapping[str, float]) -> str:
    """Returns amounts such as `CPU 2, GPU 8`."""
    return ", ".join(f"{name} {resources[name]:g}" for name in _RESOURCES if name in resources)


def _lines(error: Exception) -> list[str]:
    """Returns the message of an error: Ray gives whole tracebacks."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
