"""The generate-checkpoint component."""

from orbax_bench_components.generate_checkpoint.component import (
    generate_checkpoint as generate_checkpoint,
)
