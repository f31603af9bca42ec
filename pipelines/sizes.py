"""Sizes of a submission: what a service cannot run is refused before it is sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.document import count
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.steps import MOST_STEPS, batches
from orbax_bench_core.sweep import SweepEntry
from orbax_bench_pipelines.target import SERVICES
from orbax_bench_pipelines.targets import Target

_ARGUMENT: Final = 128 * 1024
"""Bytes of one argument of a command on Linux, in which a step receives all its inputs as JSON."""
_ENGINE: Final = 16 * 1024
"""Bytes of that which are left to the engine: places of artifacts and their metadata."""
_LIST: Final = 1_000_000
"""Bytes of what plan-sweep returns. The number is ours, not above what is documented for what such
a text may pass: an object of Argo has 1 MB at most, a request to etcd 1.5 MiB, by default, and a
message to ML Metadata 4 MB, the default of gRPC."""


def check_inputs(arguments: Mapping[str, Any]) -> None:
    """Refuses parameters that do not fit into the argument in which a step receives them."""
    texts = {name: arguments[name] for name in ("suite", "fixture", "arms") if arguments.get(name)}
    size, most = len(json.dumps(texts).encode()), _ARGUMENT - _ENGINE
    if size > most:
        each = ", ".join(f"{name} {len(json.dumps(text).encode())}" for name, text in texts.items())
        raise UserError(
            Problem(
                f"what a step is given has {size} bytes as JSON ({each}) and travels in one "
                f"argument of a command; at most {most} do: split the suite",
                key="SUITE",
            )
        )


def checked_steps(
    entries: Sequence[SweepEntry],
    repeats: int,
    points_per_step: int,
    target: Target,
    loops: int = 1,
) -> int:
    """Returns how many steps measure the points of a suite, of which each loop has all.

    Argo keeps the state of all loops of a pipeline in one object.
    """
    steps = loops * len(batches(entries, repeats, points_per_step))
    if target not in SERVICES:
        return steps
    points = count(len(entries), "point")
    if steps > MOST_STEPS:
        enough = math.ceil(loops * len(entries) / MOST_STEPS)
        own = f"{points_per_step} in each step" if points_per_step else "the default"
        where = "one loop" if loops == 1 else f"{loops} loops"
        raise UserError(
            Problem(
                f"{points} with {own} are {steps} steps of {where}, and a pipeline has "
                f"{MOST_STEPS} at most; give {enough} or more",
                key="points_per_step",
            )
        )
    size = len(json.dumps([" ".join(entry.id for entry in entries)]))
    if size > _LIST:
        raise UserError(
            Problem(
                f"the ids of {points} have {size} bytes, and plan-sweep returns {_LIST} at most: "
                "split the suite",
                key="SUITE",
            )
        )
    return steps
