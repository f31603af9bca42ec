"""Summary page of a job of GitHub Actions: Markdown that is added to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ROOM: Final = 1024 * 1024
"""Bytes that GitHub shows of one step; it drops all of a summary that is longer."""
_CUT: Final = "\n\n…the rest is in verdicts.md of the run directory.\n"


def append_step_summary(text: str, place: str) -> None:
    """Adds Markdown to the summary page of this job, cut to the room that it has."""
    data = text.rstrip("\n").encode() + b"\n\n"
    path = Path(place)
    left = _ROOM - (path.stat().st_size if path.exists() else 0)
    if len(data) > left:
        cut = _CUT.encode()
        data = data[: max(0, left - len(cut))].decode(errors="ignore").encode() + cut
    with path.open("ab") as file:
        file.write(data)
