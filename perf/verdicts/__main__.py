"""Entry point of `python -m perf.verdicts`."""

import sys

from perf.verdicts.known import main

if __name__ == "__main__":
    sys.exit(main())
