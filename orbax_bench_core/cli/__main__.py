"""`python -m orbax_bench_core.cli`: the `orbax-bench` command, wherever scripts are installed."""

import sys

from orbax_bench_core.python_command import leave_current_directory

_INTERRUPTED = 130


def start() -> None:
    """Runs the command line; an interrupt ends it quietly, also while its modules are imported."""
    try:
        from orbax_bench_core.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    leave_current_directory()
    start()
