"""`python -m orbax_bench_core.cli`: the `orbax-bench` command, wherever scripts are installed."""

from orbax_bench_core.cli.main import main

if __name__ == "__main__":
    main()
