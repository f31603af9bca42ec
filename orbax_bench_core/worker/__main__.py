"""`python -m orbax_bench_core.worker`: the one command that every host starts."""

import sys

from orbax_bench_core.owners import closed_to_others
from orbax_bench_core.worker.process import main

if __name__ == "__main__":
    with closed_to_others():  # nothing else of ours runs before it
        sys.exit(main())
