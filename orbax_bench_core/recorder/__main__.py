"""`python -m orbax_bench_core.recorder -o DIR -- COMMAND`: the launcher without its script.

Without a command it prints the folder which, on `PYTHONPATH`, records a job whose start command
cannot change.
"""

import sys

from orbax_bench_core.recorder.launcher import boot_path, run_launcher

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(boot_path())
    else:
        run_launcher(sys.argv[1:])
