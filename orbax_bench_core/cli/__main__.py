"""`python -m orbax_bench_core.cli`: the `orbax-bench` command, wherever scripts are installed."""

import sys

from orbax_bench_core.python_command import leave_current_directory

_INTERRUPTED = 130


def start() -> None:
    """Runs the command line; an interrupt ends it quietly, also while its modules are imported."""
    try:
        try:
            from orbax_bench_core.cli.main import main
        except ModuleNotFoundError:
            if sys.argv[1:2] != ["record"]:
                raise
            # A training image may have us without our dependencies (`pip install --no-deps`).
            from orbax_bench_core.recorder import run_launcher

            run_launcher(sys.argv[2:])
        else:
            main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    leave_current_directory()
    start()
