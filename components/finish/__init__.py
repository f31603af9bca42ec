"""The finish component."""

from .component import finish as finish
