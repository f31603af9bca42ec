"""The aggregate component."""

from .component import aggregate as aggregate
