"""The suite file: YAML in, validated models out."""

from orbax_bench_core.config.arms import ARMS, Arm
from orbax_bench_core.config.base import ConfigModel, checked_path
from orbax_bench_core.config.checkpoint import (
    GROUPS,
    MODELS,
    ArraySpec,
    CheckpointConfig,
    ShardingEntry,
    Spec,
    leaves,
)
from orbax_bench_core.config.described import DescribedSchema, meanings
from orbax_bench_core.config.dtypes import ALIASES, BITS, canonical
from orbax_bench_core.config.errors import (
    Problem,
    SuiteError,
    UserError,
    did_you_mean,
    explain,
    presentable,
    printable,
    shortened,
    shown,
)
from orbax_bench_core.config.execution import (
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
    gate_changes,
    gate_edits,
)
from orbax_bench_core.config.load import LoadedSuite, load_suite, parse_suite
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflict
from orbax_bench_core.config.models import expanded
from orbax_bench_core.config.override import with_keys, with_overrides
from orbax_bench_core.config.redaction import (
    CREDENTIALS,
    has_credentials,
    redacted,
    redacted_deeply,
)
from orbax_bench_core.config.rules import changed_gate
from orbax_bench_core.config.source import KeyPath, Source, read_value
from orbax_bench_core.config.suite import BenchmarkEntry, Suite

__all__ = [
    "ALIASES",
    "ARMS",
    "BITS",
    "CREDENTIALS",
    "GROUPS",
    "MAX_PRIMARY",
    "MODELS",
    "PER_ARM",
    "Arm",
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
    "Problem",
    "ShardingEntry",
    "Source",
    "Spec",
    "Suite",
    "SuiteError",
    "UserError",
    "canonical",
    "changed_gate",
    "checked_path",
    "did_you_mean",
    "expanded",
    "explain",
    "gate_changes",
    "gate_edits",
    "has_credentials",
    "leaves",
    "load_suite",
    "meanings",
    "parse_suite",
    "presentable",
    "printable",
    "read_value",
    "redacted",
    "redacted_deeply",
    "sharding_conflict",
    "shortened",
    "shown",
    "with_keys",
    "with_overrides",
]
