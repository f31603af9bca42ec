"""The best component."""

from .component import best as best
