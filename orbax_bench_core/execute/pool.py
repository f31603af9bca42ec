"""The worker groups of one run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from orbax_bench_core.config.conditions import Conditions
from orbax_bench_core.execute.group import WorkerGroup, free_address
from orbax_bench_core.execute.task import WorkerSetup
from orbax_bench_core.launch.host_memory import allocator_settings
from orbax_bench_core.sweep.isolate import benchmark_environment

if TYPE_CHECKING:
    from orbax_bench_core.results.run_directory import RunDirectory
    from orbax_bench_core.sweep.point import SweepPoint

_MAX_LIVE_GROUPS = 4

_Key = tuple[int, int]


class WorkerPool:
    """Keeps one warm group per number of devices and processes.

    Accelerators have one group for all numbers of devices: they have the devices that they have. A
    pool is a context manager; leaving it ends every worker.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        suite_file: str,
        devices: int | None,
        local_directory: str | None,
        remove_repeated_dir: bool,
        hlo_dump: bool,
    ) -> None:
        """Describes the workers; none is started yet.

        Args:
            run: The run directory.
            suite_file: The suite's file; benchmark classes may lie beside it.
            devices: Simulated CPU devices of every worker; None takes what each mesh needs.
            local_directory: Scratch directory on the local disk.
            remove_repeated_dir: Whether checkpoint data goes after each repeat.
            hlo_dump: Whether XLA writes its HLO protos to `hlo_dump/`.
        """
        self._run = run
        self._environment = _environment(run, suite_file, hlo_dump)
        self._devices = devices
        self._local_directory = local_directory
        self._remove_repeated_dir = remove_repeated_dir
        self._logs = _log_folder(run)
        self._groups: dict[_Key, WorkerGroup] = {}
        self._devices_are_fixed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for group in self._groups.values():
            group.dismiss()
        for group in self._groups.values():
            group.stop()
        self._groups.clear()

    def group(self, point: SweepPoint, timeout_s: float) -> WorkerGroup:
        """Returns a group that can run `point`, starting one when there is none.

        Args:
            point: The sweep point.
            timeout_s: Seconds that the group may take to be ready.

        Raises:
            HostFailed: A worker was not ready in time, or ended before it was.
        """
        num_devices, processes = point.num_devices or point.processes, point.processes
        key = (0 if self._devices_are_fixed else num_devices, processes)
        if key in self._groups:
            self._groups[key] = group = self._groups.pop(key)
            return group
        limit = 1 if self._devices_are_fixed else _MAX_LIVE_GROUPS
        while len(self._groups) >= limit:
            self._groups.pop(next(iter(self._groups))).stop()
        group = self._start(num_devices, processes, point.conditions, timeout_s)
        if any(ready.fixed for ready in group.ready.values()):
            # With real devices, or a number of them set from outside, a group is like any other.
            self._devices_are_fixed = True
            key = (0, processes)
        self._groups[key] = group
        return group

    def discard(self, group: WorkerGroup) -> None:
        """Ends a group in which something failed: what it left running would be measured."""
        self._groups = {key: kept for key, kept in self._groups.items() if kept is not group}
        group.stop()

    def _start(
        self, num_devices: int, processes: int, conditions: Conditions, timeout_s: float
    ) -> WorkerGroup:
        coordinator = free_address() if processes > 1 else None
        setups = [
            WorkerSetup(
                root=str(self._run.root),
                x64=conditions.x64,
                num_devices=-(-num_devices // processes),
                process_id=process_id,
                num_processes=processes,
                coordinator=coordinator,
                local_directory=self._local_directory,
                remove_repeated_dir=self._remove_repeated_dir,
            )
            for process_id in range(processes)
        ]
        name = f"worker_{num_devices}_devices"
        names = [f"{name}_host_{host}" for host in range(processes)] if processes > 1 else [name]
        return WorkerGroup(
            setups,
            environment={
                **allocator_settings(conditions.host_memory),
                **self._environment,
                **self._pinned_devices(processes),
            },
            log_files=[self._logs / f"{name}.log" for name in names],
            timeout_s=timeout_s,
        )

    def _pinned_devices(self, processes: int) -> dict[str, str]:
        if self._devices is None:
            return {}
        return {"JAX_NUM_CPU_DEVICES": str(max(1, self._devices // processes))}


def _environment(run: RunDirectory, suite_file: str, hlo_dump: bool) -> dict[str, str]:
    environment = benchmark_environment(suite_file)
    if hlo_dump:
        # XLA reads its flags once, before the first device is used.
        flags = f"--xla_dump_to={run.root / 'hlo_dump'} --xla_dump_hlo_as_proto"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    return environment


def _log_folder(run: RunDirectory) -> Path:
    if "://" in str(run.root):
        return Path(tempfile.mkdtemp(prefix="orbax-bench-logs-"))
    return Path(os.fspath(run.logs))
