"""What goes wrong while the state of a benchmark is made."""

from __future__ import annotations


class StateError(ValueError):
    """The checkpoint, mesh or path that was asked for cannot be made or read here.

    The message names the leaf or path, what was given, what is allowed and what to do.
    """
