"""`python -m website` writes generated pages again; `python -m website build` builds the site.

`python -m website options RUN` writes `docs/orbax-options.md` from a run.
"""

from __future__ import annotations

import sys

from website import generated, orbax_options, site


def main(arguments: list[str]) -> int:
    """Runs one of the three; returns the exit code."""
    if arguments == ["build"]:
        return site.build()
    if arguments[:1] == ["options"] and len(arguments) == 2:
        orbax_options.PAGE.write_text(orbax_options.page(arguments[1]))
        return 0
    if arguments:
        print("usage: python -m website [build | options RUN]", file=sys.stderr)
        return 2
    generated.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
