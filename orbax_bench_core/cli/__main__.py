"""`python -m orbax_bench_core.cli`: the `orbax-bench` command, wherever scripts are installed."""

from orbax_bench_core.python_command import leave_current_directory

if __name__ == "__main__":
    leave_current_directory()
    from orbax_bench_core.cli.main import main

    main()
