"""`python -m orbax_bench_core.worker`: the one command that every launcher starts."""

import sys

from orbax_bench_core.owners import closed_to_others
from orbax_bench_core.worker.process import main

if __name__ == "__main__":
    with closed_to_others():  # a launcher may start it, and no command of ours
        sys.exit(main())
