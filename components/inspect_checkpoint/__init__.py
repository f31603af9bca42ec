"""The inspect-checkpoint component."""

from orbax_bench_components.inspect_checkpoint.component import (
    inspect_checkpoint as inspect_checkpoint,
)
