"""What may lie in the place of a file that somebody else writes."""

import os
from pathlib import Path


def zeros(path: Path) -> None:
    """Makes a file that takes no room, and more memory to read than there is."""
    with path.open("wb") as file:
        file.truncate(2**40)


DAMAGE = {
    "pipe": os.mkfifo,
    "zeros": zeros,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "deep": lambda path: path.write_text("[" * 100_000),
}
"""Makes what is no such file in its place, by the name of the damage."""
