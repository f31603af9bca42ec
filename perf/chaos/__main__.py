"""Entry point of `python -m perf.chaos`."""

import sys

from perf.chaos.runner import main

if __name__ == "__main__":
    sys.exit(main())
