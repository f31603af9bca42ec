"""Entry point of `python -m perf.soak`."""

import sys

from perf.soak.known import main

if __name__ == "__main__":
    sys.exit(main())
