"""Nodes of a Ray cluster: one actor on each, which starts the command and forwards its lines."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import TOKEN
from orbax_bench_core.launchers.launch import Launch
from orbax_bench_core.launchers.ray_host import host_actor
from orbax_bench_core.launchers.running import (
    GRACE_S,
    PASSED_ON,
    code_of_run,
    echo,
    environment_of_hosts,
    named_host,
)

_RAY_GENERATIONS: Final = {"v5e": "v5litepod"}
"""TPU generations that Ray calls differently."""
_SLICE: Final = "ray.io/tpu-slice-name"
_WORKER: Final = "ray.io/tpu-worker-id"
_RESOURCES: Final = ("CPU", "GPU", "TPU")
_ANSWER_S: Final = 60.0
_KNOCK_S: Final = 10.0
_POLL_S: Final = 1.0


class RaySettings(ConfigModel):
    """Settings of actors.

    Attributes:
        address: Address of the cluster, `host:port`; by default that of `RAY_ADDRESS`, or the
            cluster that this machine is a node of.
        cpus_per_host: CPUs that Ray counts for each host; it does not enforce them.
        gpus_per_host: GPUs of each host.
        wait_s: Seconds for which nodes that are free are waited for.
        variables: More environment variables to pass on from here.
        program: What starts orbax-bench on the nodes; by default the Python of this command.
    """

    address: str | None = None
    cpus_per_host: Annotated[float, pydantic.Field(gt=0)] = 1.0
    gpus_per_host: pydantic.NonNegativeInt = 0
    wait_s: Annotated[float, pydantic.Field(gt=0)] = 600.0
    variables: tuple[str, ...] = ()
    program: str | None = None


@dataclasses.dataclass
class _Host:
    """One host of the run.

    Attributes:
        actor: Ray's handle of it.
        address: Address of its node.
        node: Ray's id of the node.
        slice: Name of the TPU slice of the node; empty where there is none.
        worker: Index of the node in the slice.
        code: Exit code of the command, once it has ended.
        lost: Whether Ray has lost it.
    """

    actor: Any
    address: str
    node: str
    slice: str
    worker: int
    code: int | None = None
    lost: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more comes from it."""
        return self.lost or self.code is not None


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
        """Returns what each actor asks for, and what it starts."""
        launch, place = self._launch, self._settings.address or "that RAY_ADDRESS names, or here"
        if launch.tpu is None:
            group = f"STRICT_SPREAD over {launch.hosts} nodes, each with {_amounts(self._bundle())}"
        else:
            group = f"{launch.slices} x slice_placement_group({self._slice()})"
        variables = " ".join(
            f"{name}={shlex.quote(text)}" for name, text in _place("NODE:PORT", 0, launch)
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
        """Starts a host on each node, passes on what they print, and waits for process 0."""
        ray = _ray()
        with self._connected(ray), self._placed(ray) as options:
            hosts = self._hosts(ray, options)
            try:
                self._begin(ray, hosts)
                return self._follow(ray, hosts)
            finally:
                _stop(ray, hosts)

    @contextlib.contextmanager
    def _connected(self, ray: Any) -> Iterator[None]:
        address = self._settings.address or os.environ.get("RAY_ADDRESS") or "auto"
        try:
            _knock(address)
            with _own_signals():
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UserError(
                f"cannot reach a Ray cluster at {address}: {' '.join(lines)}; give --set "
                "address=HOST:PORT, and the same versions of Ray and Python as the cluster has"
            ) from None
        try:
            yield
        finally:
            ray.shutdown()

    @contextlib.contextmanager
    def _placed(self, ray: Any) -> Iterator[list[dict[str, Any]]]:
        """Reserves the nodes."""
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        hosts, resources = self._launch.hosts, self._bundle()
        with contextlib.ExitStack() as stack:
            if self._launch.tpu is None:
                group = placement_group([resources] * hosts, strategy="STRICT_SPREAD")
                stack.callback(remove_placement_group, group)
            else:
                whole = self._slices(ray)
                stack.callback(whole.shutdown)
                group, resources = whole.placement_group, {**whole.bundle_resources}
            self._await(ray, group)
            asked = {
                "num_cpus": resources.pop("CPU", 0),
                "num_gpus": resources.pop("GPU", 0),
                "resources": resources,
            }
            yield [
                {**asked, "scheduling_strategy": PlacementGroupSchedulingStrategy(group, index)}
                for index in range(hosts)
            ]

    def _slices(self, ray: Any) -> Any:
        from ray.util.tpu import slice_placement_group

        shape, wait_s = self._launch.tpu, self._settings.wait_s
        assert shape is not None
        try:
            return slice_placement_group(
                **self._slice(),
                num_slices=self._launch.slices,
                head_reservation_timeout_s=wait_s,
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
            _say(f"waiting for {hosts} nodes of Ray that are free; {_nodes(ray)}")
        if not group.wait(wait_s):
            shape = self._launch.tpu
            what = _amounts(self._bundle()) if shape is None else f"a host of TPU {shape}"
            raise UserError(
                f"Ray has not had {hosts} different nodes, each with {what} free, within "
                f"{wait_s:g} s; {_nodes(ray)}"
            )

    def _hosts(self, ray: Any, options: Sequence[Mapping[str, Any]]) -> list[_Host]:
        """Makes the actors, and returns them in the order of ranks.

        The bundles of a group are on its nodes in any order. Hosts of a TPU slice have one, which
        JAX expects the ranks to have as well.
        """
        made = ray.remote(max_restarts=0, max_concurrency=4)(host_actor())
        actors = [made.options(**each).remote() for each in options]
        try:
            found = ray.get([actor.where.remote() for actor in actors], timeout=_ANSWER_S)
        except ray.exceptions.RayError as error:
            raise UserError(f"Ray cannot start the hosts: {_first_line(error)}") from None
        labels = {node["NodeID"]: node.get("Labels") or {} for node in ray.nodes()}
        hosts = [
            _Host(
                actor,
                address,
                node,
                slice=labels.get(node, {}).get(_SLICE, ""),
                worker=int(labels.get(node, {}).get(_WORKER, 0)),
            )
            for actor, (address, node) in zip(actors, found, strict=True)
        ]
        return sorted(hosts, key=lambda host: (host.slice, host.worker, host.address))

    def _begin(self, ray: Any, hosts: Sequence[_Host]) -> None:
        launch, given = self._launch, environment_of_hosts()
        names = (TOKEN, *PASSED_ON, *self._settings.variables)
        passed = {name: given[name] for name in names if name in given}
        words, folder = launch.by(self._settings.program), str(Path.cwd())
        slices = list(dict.fromkeys(host.slice or host.node for host in hosts))
        begun = []
        try:
            head = ray.get(hosts[0].actor.free_address.remote(), timeout=_ANSWER_S)
            for rank, host in enumerate(hosts):
                sets = {**passed, **dict(_place(head, rank, launch))}
                if launch.slices > 1:
                    index = slices.index(host.slice or host.node)
                    sets |= _megascale(hosts[0].address, len(slices), index)
                begun.append(host.actor.start.remote(words, sets, folder))
            ray.get(begun, timeout=_ANSWER_S)
        except ray.exceptions.RayError as error:
            raise UserError(
                f"a node cannot start `{words[0]}`: {_last_line(error)}; give --set program=... "
                "where nodes have it elsewhere"
            ) from None

    def _follow(self, ray: Any, hosts: Sequence[_Host]) -> int:
        """Prints what hosts say until process 0 has ended, and the others after it."""
        asked = {host.actor.said.remote(_POLL_S): rank for rank, host in enumerate(hosts)}
        until: float | None = None
        while asked and (until is None or time.monotonic() < until):
            ready, _ = ray.wait(list(asked), timeout=_POLL_S)
            for question in ready:
                rank = asked.pop(question)
                if self._heard(ray, question, rank, hosts[rank]):
                    asked[hosts[rank].actor.said.remote(_POLL_S)] = rank
            if until is None and hosts[0].over:
                until = time.monotonic() + GRACE_S
        return code_of_run(1 if hosts[0].code is None else hosts[0].code)

    @staticmethod
    def _heard(ray: Any, question: Any, rank: int, host: _Host) -> bool:
        """Prints what a host has said since it was asked; returns whether more may come."""
        try:
            lines, host.code = ray.get(question)
        except ray.exceptions.RayError as error:
            host.lost = True
            _say(f"host {rank}: Ray has lost it at {host.address}: {_first_line(error)}")
            return False
        echo(lines, lambda line: named_host(rank, line))
        return not host.over


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keeps what SIGTERM does: Ray would exit at once, and no host be told to end."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _knock(address: str) -> None:
    """Connects to a cluster that is given by its address: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise UserError(
            "--on ray needs Ray, in the version that the cluster has: pip install "
            "'orbax-bench[ray]'"
        ) from None
    return ray


def _place(head: str, rank: int, launch: Launch) -> Iterator[tuple[str, str]]:
    yield "ORBAX_BENCH_HEAD", head
    yield "ORBAX_BENCH_HOST", str(rank)
    yield "ORBAX_BENCH_NUM_HOSTS", str(launch.hosts)


def _megascale(address: str, slices: int, index: int) -> dict[str, str]:
    from ray.util.tpu import get_tpu_coordinator_env_vars

    found: dict[str, str] = get_tpu_coordinator_env_vars(address, slices, index)
    return found


def _stop(ray: Any, hosts: Sequence[_Host]) -> None:
    """Ends what still runs, kindly at first; what has ended or is lost does not answer."""
    left = [host for host in hosts if not host.over]
    ending = [host.actor.stop.remote(GRACE_S) for host in left]
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get(ending, timeout=GRACE_S + _ANSWER_S)


def _nodes(ray: Any) -> str:
    """Returns what the nodes of the cluster have, for people."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    found = (f"{node['NodeManagerAddress']} ({_amounts(node['Resources'])})" for node in alive)
    return f"its {len(alive)} nodes: {', '.join(found)}"


def _amounts(resources: Mapping[str, float]) -> str:
    """Returns amounts such as `CPU 2, GPU 8`."""
    return ", ".join(f"{name} {resources[name]:g}" for name in _RESOURCES if name in resources)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def _last_line(error: Exception) -> str:
    return [line.strip() for line in str(error).splitlines() if line.strip()][-1]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
