"""`python -m website` writes generated pages again; `python -m website build` builds the site."""

from __future__ import annotations

import sys

from website import generated, site


def main(arguments: list[str]) -> int:
    """Runs one of the two; returns the exit code."""
    if arguments == ["build"]:
        return site.build()
    if arguments:
        print("usage: python -m website [build]", file=sys.stderr)
        return 2
    generated.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
