"""Flags of the published guide, so that a script changes one path to move over.

python -P -m orbax_bench_core.run_benchmarks --config_file=sweep.yaml --output_directory=/tmp/bench/
"""

import copy
import inspect
import sys
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Final

from orbax_bench_core.python_command import leave_current_directory

NAME: Final = "python -P -m orbax_bench_core.run_benchmarks"
_FLAGS: Final = ("--config_file", "--config-file")
_SWITCHED: Final = {
    **dict.fromkeys(("true", "t", "1", "yes", "y"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n"), False),
}
_EXAMPLE: Final = f"{NAME} --config_file=sweep.yaml --output_directory=/tmp/bench/"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `orbax-bench run` under the guide's name, with its flags."""
    from orbax_bench_core.cli.main import run_command_line

    given = sys.argv[1:] if arguments is None else arguments

    def start() -> object:
        program = command()
        return program(as_options(given, program), prog_name=NAME)

    run_command_line(start)


def command() -> Any:
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


def as_options(given: Sequence[str], program: Any) -> list[str]:
    """Returns a command line in absl's spelling, as the guide's program takes it, in Click's.

    A flag may have one dash or two, underscores or dashes; a switch may be `--flag=true`,
    `--flag=false` or `--noflag`. The last of a switch counts.
    """
    known = {
        _bare(flag): option
        for option in program.params
        for flag in (*option.opts, *option.secondary_opts)
    }
    negative = {_bare(flag) for option in program.params for flag in option.secondary_opts}
    spelt: list[str] = []
    for argument in given:
        if not argument.startswith("-") or len(argument.lstrip("-")) < 2:
            spelt.append(argument)
            continue
        flag, equals, value = argument.partition("=")
        name, on = _bare(flag), True
        if name not in known and name.startswith("no"):
            switch = known.get(name.removeprefix("no"))
            if switch is not None and switch.is_flag and not equals:
                name, on = name.removeprefix("no"), False
        option = known.get(name)
        if option is None:
            spelt.append(argument if argument.startswith("--") else f"-{argument}")
        elif option.is_flag and (not equals or value.lower() in _SWITCHED):
            spelt = [other for other in spelt if other != option.opts[0]]
            if (on and _SWITCHED.get(value.lower(), True)) != (name in negative):
                spelt.append(option.opts[0])
        else:
            spelt.append(f"{option.opts[0]}{equals}{value}")
    return spelt


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


if __name__ == "__main__":
    leave_current_directory()
    main()
