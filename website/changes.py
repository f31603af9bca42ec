"""Notes of one release, from the changelog.

`python -m website.changes v0.2.0` prints them. It refuses a tag that is not the version of the
project, and a version that the changelog does not have. It needs no package.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def notes(tag: str, project: str, changelog: str) -> str:
    """Returns the changelog's text for the version of a tag.

    Args:
        tag: Such as `v0.2.0`.
        project: The text of `pyproject.toml`.
        changelog: The text of `CHANGELOG.md`, with a heading `## [0.2.0] - 2026-12-01`.

    Raises:
        ValueError: The three do not agree.
    """
    version = tomllib.loads(project)["project"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and pyproject.toml has version {version}")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(rf"{heading}\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no heading `## [{version}] - YYYY-MM-DD`")
    return found.group(1).strip() + "\n"


def main(arguments: list[str]) -> int:
    """Prints the notes of the tag that is named; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m website.changes TAG", file=sys.stderr)
        return 2
    try:
        text = notes(
            arguments[0],
            (ROOT / "pyproject.toml").read_text(),
            (ROOT / "CHANGELOG.md").read_text(),
        )
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
