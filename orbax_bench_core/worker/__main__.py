"""`python -m orbax_bench_core.worker`: the one command that every launcher starts."""

import sys

from orbax_bench_core.worker.process import main

if __name__ == "__main__":
    sys.exit(main())
