"""Entry point of `python -m perf.counts`."""

import sys

from perf.counts.runner import main

if __name__ == "__main__":
    sys.exit(main())
