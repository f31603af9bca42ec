"""Where commands show results to people."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

LOG_WIDTH: Final = 200
"""Columns of what is no terminal: a log has room for whole lines."""


def results_console() -> Console:
    """Returns a console on standard output as it is now, which a caller may redirect later."""
    from rich.console import Console

    out = sys.stdout
    return Console(file=out) if out.isatty() else Console(file=out, width=LOG_WIDTH, soft_wrap=True)
