"""Fit of what is measured to the slices that it is measured on."""

from __future__ import annotations

from collections.abc import Iterable

from orbax_bench_core.config import Suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.hardware import SliceShape


def require_whole_slices(processes: Iterable[int], shape: SliceShape, slices: int = 1) -> None:
    """Checks that points use every host of the slices: libtpu waits for those that do not start.

    Args:
        processes: Host processes of each point.
        shape: The slice.
        slices: How many of them there are.
    """
    hosts = shape.hosts * slices
    misfits = sorted({count for count in processes if count != hosts})
    if misfits:
        others = " and ".join(map(str, misfits))
        raise UserError(
            f"{slices} x TPU {shape} has {hosts} host{'s' if hosts > 1 else ''} of "
            f"{shape.chips_per_host} chips, and a point of execution.processes {others} does not "
            f"use all of them; a slice is only used whole: set {hosts}, or leave it out"
        )


def named_processes(suite: Suite) -> tuple[int, ...]:
    """Returns the numbers of processes that a suite or its arms name; what names none fits."""
    named = "processes" in suite.execution.model_fields_set
    arms = () if suite.arms is None else (suite.arms.baseline, suite.arms.candidate)
    of_arms = tuple(arm.processes for arm in arms if arm.processes is not None)
    return (*(suite.execution.processes if named else ()), *of_arms)
