"""Speeds of storage as a run measured them."""

from __future__ import annotations

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits import read
from orbax_bench_core.plan.memory import Speeds
from orbax_bench_core.records import RunDirectory, RunFile


def speeds_of_run(directory: str) -> Speeds:
    """Returns what the storage of a run can do at best: `write_fsync` and `read_cold`.

    Raises:
        UserError: The run has no limits, or they cannot be read.
    """
    limits = read(RunDirectory(directory))
    if limits is None:
        raise UserError(
            f"{directory!r} has no {RunFile.LIMITS}: give the directory of a run that was "
            "not made with --no-limits, or --write-speed and --read-speed"
        )
    found = {probe.name: probe.gib_per_s for probe in limits.probes}
    source = f"measured in {directory}"
    return Speeds(found.get("write_fsync"), found.get("read_cold"), source, source)
