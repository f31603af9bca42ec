"""From a sweep point to the pair that two arms make of it."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any, Final

from orbax_bench_core.authoring import BenchmarkOptions
from orbax_bench_core.config import Arm, KeyPath, Suite, did_you_mean
from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.classes import BenchmarkClassError, load_class, options_class
from orbax_bench_core.sweep.options import OptionError, axes, combinations, plain
from orbax_bench_core.sweep.point import SweepPoint


class ArmError(ValueError):
    """Something that an arm overrides cannot be used; `where` is its key in the suite."""

    def __init__(self, message: str, where: KeyPath) -> None:
        super().__init__(message)
        self.where = where


def paired(point: SweepPoint, suite: Suite) -> SweepPoint:
    """Returns the pair of points that the arms of a suite make of one of its combinations.

    Args:
        point: The combination as the suite has it.
        suite: The suite, with arms.

    Raises:
        ArmError: An arm names a benchmark or an option that does not exist.
    """
    return _arm(point, suite, "baseline").replace(candidate=_arm(point, suite, "candidate"))


def _arm(point: SweepPoint, suite: Suite, name: Arm) -> SweepPoint:
    arm, where = suite.arm(name), ("arms", name)
    path = point.benchmark
    if arm.generator is not None:
        path = catalog.class_path(arm.generator)
        if "." not in path:
            hint = did_you_mean(path, catalog.BUILTINS)
            raise ArmError(f"unknown built-in benchmark {path!r}; {hint}", (*where, "generator"))
    for option, value in arm.options.items():
        if isinstance(value, list):
            raise ArmError(
                f"an arm has one value per option, got {value!r}; sweep it under `benchmarks`",
                (*where, "options", option),
            )
    try:
        generator = options_class(load_class(path))
        given = {**_known(point, path, generator), **arm.options}
        (options,) = combinations(axes(generator, given))
        if not generator.from_dict(given).is_valid():
            raise ArmError(f"its `is_valid` rejects {given}", (*where, "options"))
    except BenchmarkClassError as error:
        raise ArmError(str(error), (*where, "generator")) from None
    except OptionError as error:
        key = (error.key,) if error.key else ()
        raise ArmError(str(error), (*where, "options", *key)) from None
    return point.replace(
        benchmark=path,
        options=plain(options),
        given=tuple(given),
        mesh=arm.mesh_config or point.mesh,
        processes=arm.processes or point.processes,
        storage=arm.storage or point.storage,
        environment=suite.environment(arm.environment),
    )


def _known(point: SweepPoint, path: str, generator: type[BenchmarkOptions]) -> dict[str, Any]:
    """Returns what the suite gives, as far as the benchmark of an arm has such options.

    Two benchmarks share some options at most; the suite's own benchmark has them all.
    """
    if path == point.benchmark:
        return point.given_options
    names = {field.name for field in dataclasses.fields(generator)}
    return {name: value for name, value in point.given_options.items() if name in names}


BLOCK_SIZE: Final = 4
"""Operations in a block: two of each arm."""

_ARRANGEMENTS: Final[list[tuple[Arm, ...]]] = sorted(
    set(itertools.permutations(("baseline", "baseline", "candidate", "candidate")))
)


def arrangement(run_id: str, point_id: str, block: int) -> tuple[Arm, ...]:
    """Returns which arm each operation of a block measures, one of six orders with equal chance.

    The id of the run is the seed: a run that was interrupted goes on with the order that it began
    with, and two runs of one suite have different orders, so that a disturbance at the same point
    of every run does not always meet the same arm.

    Args:
        run_id: Id of the run.
        point_id: Id of the pair.
        block: Index of the block.
    """
    return random.Random(f"{run_id}:{point_id}:{block}").choice(_ARRANGEMENTS)
