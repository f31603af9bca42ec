"""Sweep: the points and pairs of a suite, with stable ids."""

from orbax_bench_core.sweep.axes import Axis, sweepable_axes, swept_keys
from orbax_bench_core.sweep.catalog import (
    BUILTINS,
    benchmark_of,
    is_builtin,
    names_of,
    short_name,
    system_of,
)
from orbax_bench_core.sweep.classes import load_class, options_class, source_file
from orbax_bench_core.sweep.design import (
    PairDesign,
    Placement,
    ProcessNoise,
    ProcessNoiseOf,
    allocator_settings,
    design_of,
    earlier_design,
    host_memory_of,
    placement,
)
from orbax_bench_core.sweep.expansion import Expansion, SkippedPoint, expand_here
from orbax_bench_core.sweep.isolate import benchmark_environment, expand, suite_folder
from orbax_bench_core.sweep.options import describe_options, option_types
from orbax_bench_core.sweep.pair import (
    BLOCK_SIZE,
    Pair,
    SweepEntry,
    arrangement,
    baseline_point,
    entry_from_json,
    side,
    sides,
)
from orbax_bench_core.sweep.point import SweepPoint, differences, nearest

__all__ = [
    "BLOCK_SIZE",
    "BUILTINS",
    "Axis",
    "Expansion",
    "Pair",
    "PairDesign",
    "Placement",
    "ProcessNoise",
    "ProcessNoiseOf",
    "SkippedPoint",
    "SweepEntry",
    "SweepPoint",
    "allocator_settings",
    "arrangement",
    "baseline_point",
    "benchmark_environment",
    "benchmark_of",
    "describe_options",
    "design_of",
    "differences",
    "earlier_design",
    "entry_from_json",
    "expand",
    "expand_here",
    "host_memory_of",
    "is_builtin",
    "load_class",
    "names_of",
    "nearest",
    "option_types",
    "options_class",
    "placement",
    "short_name",
    "side",
    "sides",
    "source_file",
    "suite_folder",
    "sweepable_axes",
    "swept_keys",
    "system_of",
]
