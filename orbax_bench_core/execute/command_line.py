"""Command of this process, as readers of its lease or lock see it."""

import sys
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import printable, redacted

_UNSHOWN_FLAG: Final = "--notify"
"""Flag whose value is an address that only those may know who may post there."""


def command_line() -> str:
    """Returns the command of this process, for readers of its lease or lock, without a secret."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    for place, word in enumerate(words):
        flag, equals, _ = word.partition("=")
        if flag == _UNSHOWN_FLAG and equals:
            words[place] = f"{flag}=…"
        elif place and words[place - 1] == _UNSHOWN_FLAG:
            words[place] = "…"
    return printable(redacted(" ".join(words).strip())) or "python"
