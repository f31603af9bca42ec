"""The page of what a suite may sweep: how each setting is proved, or why it is not."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from orbax_bench_core.interface import BenchmarkOptions
from orbax_bench_core.sweep import BUILTINS, Axis, sweepable_axes
from orbax_bench_core.worker.proofs import NOT_PROVED, NOT_TRIED, PROOFS

_HEAD: Final = """\
# What is proved of each setting

Everything that a suite may sweep, with the evidence that a value had its effect; tests run two
values of each. The record of each repeat says `in effect`, with [the
proof](../failures.md#options-without-effect-and-storage-that-throttles), or `not proved`, here with
the reason. Options of your own benchmark are `not proved`: only their author knows what they do.

"""
_ALIKE: Final = tuple(field.name for field in dataclasses.fields(BenchmarkOptions))
_MANY: Final = 3
_NAMES: Final = "not proved: a name for people, which changes nothing"
_FILES: Final = "files that the repeat left"
_PROCESS: Final = "environment of the process"

BLOCKS: Final = {
    "benchmarks.generator": "operations measured",
    "checkpoint_configs.path": _FILES,
    "checkpoint_configs.spec": _FILES,
    "checkpoint_configs.random_seed": "digest of the state",
    "checkpoint_configs.sharding_config_path": _FILES,
    "checkpoint_configs.load_with_colocated_python": "not proved: true needs Pathways",
    "checkpoint_configs.model": _FILES,
    "checkpoint_configs.scale": _FILES,
    "checkpoint_configs.optimizer": _FILES,
    "checkpoint_configs.layers": _FILES,
    "checkpoint_configs.dtypes": _FILES,
    "checkpoint_configs.nnx": _FILES,
    "checkpoint_configs.name": _NAMES,
    "mesh_configs.mesh_axes": _FILES,
    "mesh_configs.ici_parallelism": _FILES,
    "mesh_configs.dcn_parallelism": _FILES,
    "mesh_configs.allow_split_physical_axes": (
        "not proved: it decides about the wiring of TPUs alone"
    ),
    "mesh_configs.process_is_granule": (
        "not proved: on CPUs the devices lie in the same order with both"
    ),
    "mesh_configs.name": _NAMES,
    "storage": _FILES,
    "environments.name": _NAMES,
    "environments.requirements": "versions in the provenance",
    "environments.interpreter": _PROCESS,
    "execution.processes": "processes in the provenance",
    "execution.cache": "resident share before a load",
    "execution.host_memory": _PROCESS,
    "arms.options": "as without arms",
    "arms.environment": _PROCESS,
    "arms.generator": "operations measured",
    "arms.processes": "processes in the provenance",
    "arms.mesh_config": "devices in the provenance",
    "arms.storage": _FILES,
}
"""Evidence for each axis that is no option, or why there is none."""


def proofs_page() -> str:
    """Returns the page as the code has it."""
    axes = sweepable_axes()
    options = [axis for axis in axes if axis.place in BUILTINS]
    rows = [(f"`{axis}`", BLOCKS[str(axis)]) for axis in axes if axis not in options]
    rows += [(f"`{name}` of every benchmark", PROOFS[name].by) for name in _ALIKE]
    rows += [
        (f"every other option of `{name}`", f"not proved: {NOT_TRIED[name]}") for name in NOT_TRIED
    ]
    others = [a for a in options if a.name not in _ALIKE and a.place not in NOT_TRIED]
    rows += _of_options(others)
    table = ["| setting | by |", "|---|---|", *(f"| {axis} | {by} |" for axis, by in rows), ""]
    return _HEAD + "\n".join(table)


def _of_options(axes: Iterable[Axis]) -> Iterator[tuple[str, str]]:
    """Yields a row for each option and each thing that is said of it, with its benchmarks."""
    ordered = sorted(axes, key=lambda axis: (axis.name, _said(axis)))
    for (name, said), alike in itertools.groupby(ordered, lambda axis: (axis.name, _said(axis))):
        places = [f"`{axis.place}`" for axis in alike]
        of = ", ".join(places) if len(places) <= _MANY else f"{len(places)} benchmarks"
        yield f"`{name}` of {of}", said


def _said(axis: Axis) -> str:
    why = NOT_PROVED.get(str(axis), NOT_PROVED.get(axis.name))
    return PROOFS[axis.name].by if why is None else f"not proved: {why}"
