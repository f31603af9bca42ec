"""Lines of JSON that are added to a file, one each time that something is done."""

import contextlib
import json
from pathlib import Path
from typing import Any


def read_lines(file: Path) -> list[Any]:
    """Returns what the lines hold; one that a kill has torn is passed over."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def add_line(file: Path, row: object) -> None:
    """Adds a line, after one that is torn as well."""
    file.parent.mkdir(parents=True, exist_ok=True)
    torn = file.exists() and not file.read_text().endswith("\n")
    with file.open("a") as lines:
        lines.write(("\n" if torn else "") + json.dumps(row) + "\n")
