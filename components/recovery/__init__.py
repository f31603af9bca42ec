"""The recovery component."""

from .component import recovery as recovery
