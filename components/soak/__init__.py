"""The soak component."""

from .component import soak as soak
