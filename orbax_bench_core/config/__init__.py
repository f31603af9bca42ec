"""The suite file: YAML in, validated models out."""

from orbax_bench_core.config.base import ConfigModel, DescribedSchema, meanings
from orbax_bench_core.config.checkpoint import (
    GROUPS,
    MODELS,
    ArraySpec,
    CheckpointConfig,
    ShardingEntry,
    Spec,
    checked_name,
    leaves,
)
from orbax_bench_core.config.dtypes import ALIASES, BITS, canonical
from orbax_bench_core.config.errors import TYPES, SuiteError, explain, mistyped
from orbax_bench_core.config.execution import (
    MAX_PROCESSES,
    Cache,
    Conditions,
    EnvironmentConfig,
    ExecutionConfig,
    HostMemory,
)
from orbax_bench_core.config.gate import (
    MAX_PRIMARY,
    PER_ARM,
    GateConfig,
    GateRule,
    MetricRule,
    changed_gate,
    gate_changes,
    gate_edits,
)
from orbax_bench_core.config.load import LoadedSuite, load_suite, parse_suite
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflict
from orbax_bench_core.config.models import expanded
from orbax_bench_core.config.override import with_keys, with_overrides
from orbax_bench_core.config.source import KeyPath, SuiteSource, read_value
from orbax_bench_core.config.suite import ARMS, Arm, ArmConfig, BenchmarkEntry, Suite

__all__ = [
    "ALIASES",
    "ARMS",
    "BITS",
    "GROUPS",
    "MAX_PRIMARY",
    "MAX_PROCESSES",
    "MODELS",
    "PER_ARM",
    "TYPES",
    "Arm",
    "ArmConfig",
    "ArraySpec",
    "BenchmarkEntry",
    "Cache",
    "CheckpointConfig",
    "Conditions",
    "ConfigModel",
    "DescribedSchema",
    "EnvironmentConfig",
    "ExecutionConfig",
    "GateConfig",
    "GateRule",
    "HostMemory",
    "KeyPath",
    "LoadedSuite",
    "MeshConfig",
    "MetricRule",
    "ShardingEntry",
    "Spec",
    "Suite",
    "SuiteError",
    "SuiteSource",
    "canonical",
    "changed_gate",
    "checked_name",
    "expanded",
    "explain",
    "gate_changes",
    "gate_edits",
    "leaves",
    "load_suite",
    "meanings",
    "mistyped",
    "parse_suite",
    "read_value",
    "sharding_conflict",
    "with_keys",
    "with_overrides",
]
