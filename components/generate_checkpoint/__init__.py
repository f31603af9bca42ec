"""The generate-checkpoint component."""

from .component import (
    generate_checkpoint as generate_checkpoint,
)
