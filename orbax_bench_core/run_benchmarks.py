"""Flags of the published guide, so that a script changes one path to move over.

python -m orbax_bench_core.run_benchmarks --config_file=sweep.yaml --output_directory=/tmp/bench/
"""

from __future__ import annotations

import copy
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

NAME: Final = "python -m orbax_bench_core.run_benchmarks"
_FLAGS: Final = ("--config_file", "--config-file")
_EXAMPLE: Final = f"{NAME} --config_file=sweep.yaml --output_directory=/tmp/bench/"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `orbax-bench run` under the guide's name, with its flags.

    Args:
        arguments: Command line without the program; None takes the process's own.
    """
    from orbax_bench_core.cli.main import run_command_line

    given = with_two_dashes(sys.argv[1:] if arguments is None else arguments)
    run_command_line(lambda: command()(given, prog_name=NAME))


def command() -> Callable[..., object]:
    """Returns `orbax-bench run` with the suite as a flag, and the guide's spelling of flags."""
    import typer

    from orbax_bench_core.cli.run import run

    def start(**given: Any) -> None:
        run(**given)

    signature = inspect.signature(run, eval_str=True)
    flag = typer.Option(*_FLAGS, help="The suite file: YAML, a local path or gs://.")
    parameters = [
        given.replace(
            annotation=Annotated[str, flag] if given.name == "suite" else _respelt(given.annotation)
        )
        for given in signature.parameters.values()
    ]
    start.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    start.__annotations__ = {given.name: given.annotation for given in parameters}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=_help(inspect.getdoc(run) or ""))(start)
    return typer.main.get_command(app)


def _respelt(annotation: Any) -> Any:
    """Returns a parameter whose flag has its underscores first, as in the guide."""
    kind, info = typing.get_args(annotation)[:2]
    info = copy.copy(info)
    if isinstance(info.default, str):  # where Typer keeps the first of an option's spellings
        spellings = [info.default, *(info.param_decls or ())]
        info.default, *rest = sorted(spellings, key=lambda flag: "_" not in flag)
        info.param_decls = tuple(rest)
    return Annotated[kind, info]


def _help(text: str) -> str:
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{_EXAMPLE}\n\n{rest}"


def with_two_dashes(given: Sequence[str]) -> list[str]:
    """Returns a command line whose one-dash flags, which the guide's program takes, have two."""
    return [
        f"-{argument}"
        if argument.startswith("-") and not argument.startswith("--") and len(argument) > 2
        else argument
        for argument in given
    ]


if __name__ == "__main__":
    main()
