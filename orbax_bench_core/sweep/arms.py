"""Arms of a suite: the pair of points that they make of one combination."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core.config import Arm, KeyPath, Suite
from orbax_bench_core.interface import BenchmarkOptions
from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.options import (
    OptionError,
    axes,
    combinations,
    is_valid,
    plain,
    reason_of_rejection,
)
from orbax_bench_core.sweep.pair import Pair
from orbax_bench_core.sweep.point import SweepPoint


class ArmError(ValueError):
    """Something that an arm overrides cannot be used; `where` is its key in the suite."""

    def __init__(self, message: str, where: KeyPath) -> None:
        super().__init__(message)
        self.where = where


def pair_of_arms(point: SweepPoint, suite: Suite) -> Pair:
    """Returns the pair of points that the arms of a suite make of one of its combinations."""
    return Pair(baseline=_arm(point, suite, "baseline"), candidate=_arm(point, suite, "candidate"))


def _arm(point: SweepPoint, suite: Suite, arm_name: Arm) -> SweepPoint:
    arm, where = suite.arm(arm_name), ("arms", arm_name)
    for option, value in arm.options.items():
        if isinstance(value, list):
            raise ArmError(
                f"an arm has one value per option, got {value!r}; sweep it under `benchmarks`",
                (*where, "options", option),
            )
    try:
        name = point.benchmark if arm.generator is None else catalog.benchmark_of(arm.generator)
        benchmark = catalog.load_class(name)
        generator = catalog.options_class(benchmark)
        given = {**_known_options(point, name, generator), **arm.options}
        (options,) = combinations(axes(generator, given))
        if not is_valid(generator, given):
            said = f"its `is_valid` rejects {given}{reason_of_rejection(generator)}"
            raise ArmError(said, (*where, "options"))
    except catalog.BenchmarkClassError as error:
        raise ArmError(str(error), (*where, "generator")) from None
    except OptionError as error:
        key, message = error.mistakes[0]
        raise ArmError(message, (*where, "options", *((key,) if key else ()))) from None
    return point.replace(
        benchmark=name,
        id_name=catalog.id_name_of(benchmark),
        options=plain(options),
        given=tuple(given),
        mesh=arm.mesh_config or point.mesh,
        processes=arm.processes or point.processes,
        storage=arm.storage or point.storage,
        environment=suite.environment(arm.environment),
    ).with_presets_expanded()


def _known_options(
    point: SweepPoint, benchmark: str, generator: type[BenchmarkOptions]
) -> dict[str, Any]:
    """Returns the suite's values, as far as the benchmark of an arm has such options.

    Two benchmarks share some options at most; the suite's own benchmark has them all.
    """
    if benchmark == point.benchmark:
        return point.given_options
    names = {field.name for field in dataclasses.fields(generator)}
    return {name: value for name, value in point.given_options.items() if name in names}
