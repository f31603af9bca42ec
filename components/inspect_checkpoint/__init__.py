"""The inspect-checkpoint component."""

from .component import inspect_checkpoint as inspect_checkpoint
