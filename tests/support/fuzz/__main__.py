"""Entry point of `python -m tests.support.fuzz --trial N`: 500 inputs that nobody meant."""

import sys

from tests.support.fuzz.trial import main

if __name__ == "__main__":
    sys.exit(main())
