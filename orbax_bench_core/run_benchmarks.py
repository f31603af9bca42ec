"""Flags of the published guide, so that a script changes one path to move over.

python -m orbax_bench_core.run_benchmarks --config_file=sweep.yaml --output_directory=/tmp/bench/
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_OWN = "config_file"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `orbax-bench run`, taking the suite from `--config_file`.

    Args:
        arguments: Command line without the program; None takes the process's own.
    """
    from orbax_bench_core.cli.main import main as command_line

    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.argv = ["orbax-bench", "run", *_with_positional_suite(given)]
    command_line()


def _with_positional_suite(given: list[str]) -> list[str]:
    """Turns `--config_file=X`, `--config_file X` and their one-dash forms into a bare `X`."""
    result: list[str] = []
    rest = iter(given)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name.startswith("-") and name.lstrip("-").replace("-", "_") == _OWN:
            result.append(value if equals else next(rest, ""))
        elif name.startswith("-") and not name.startswith("--") and len(name) > 2:
            result.append(f"-{argument}")
        else:
            result.append(argument)
    return result


if __name__ == "__main__":
    main()
