"""Entry point of the `orbax-bench` command: its sub-commands, and those of other packages."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
import typer.core

from orbax_bench_core.cli.buckets import check_buckets
from orbax_bench_core.cli.command_table import COMMANDS, GROUPS, CommandTable
from orbax_bench_core.cli.terminal import installed, printable_streams
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.interrupts import interrupted_when_told
from orbax_bench_core.owners import closed_to_others

if TYPE_CHECKING:
    from orbax_bench_core.errors import UserError

_HERE: Final = frozenset(COMMANDS) - {"launch", "record"}
"""Commands that read and write here what they are told of; others hand it on: to a cluster, or to a
job, which also keeps its own umask."""
_OF_RUNS: Final = _HERE - {"diagnose", "doctor", "limits"}
"""Commands for which a directory that they are told of is no recording of a job."""
_MISUSE: Final[Any] = typer.BadParameter.__base__
"""What the parser raises of a command line; Typer does not export it."""


class _Commands(typer.core.TyperGroup):
    """The sub-commands, of which a command line needs one."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = CommandTable()

    def invoke(self, ctx: Any) -> Any:
        """Runs a command; what its parser says of a long word is cut to a screen."""
        try:
            return super().invoke(ctx)
        except _MISUSE as wrong:
            from orbax_bench_core.errors import on_a_screen

            wrong.message = on_a_screen(wrong.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands by what they are for."""
        names = self.list_commands(ctx)
        added, last = names[len(COMMANDS) :], [*GROUPS][-1]
        width = formatter.width - 6 - max(map(len, names))
        for heading, group in GROUPS.items():
            rows = [
                (name, command.get_short_help_str(width))
                for name in (*group, *(added if heading == last else ()))
                if (command := self.get_command(ctx, name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=30, col_spacing=2)


_FIRST: Final = """\
Measure checkpointing, and tell a regression from noise. What people do first:

  orbax-bench init                   create a starter suite
  orbax-bench run SUITE -o DIR       measure options, meshes and checkpoints
  orbax-bench ab SUITE -o DIR        compare two releases, options or branches
  orbax-bench bisect SUITE -o DIR    find the release that made saves slower

A suite is one YAML file. This is a whole one, which sweeps two options:

  suite_name: first
  checkpoint_config: {spec: {w: {dtype: float32, shape: [1024, 1024]}}}
  benchmarks:
    - generator: save_restore
      options: {use_ocdbt: [true, false], use_zarr3: [true, false]}

`orbax-bench list` shows what can be measured, `orbax-bench doctor` what this
machine has, and `orbax-bench --help` every command.
"""

app = typer.Typer(
    cls=_Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def _orbax_bench(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the versions that a result depends on.")
    ] = False,
) -> None:
    """Measure checkpointing: sweeps over options, meshes and checkpoints, every result kept.

    A first run: orbax-bench run SUITE.yaml --output-directory DIR
    """
    if version:
        print(_versions())
    elif context.invoked_subcommand is None:
        print(_FIRST, end="")


def _versions() -> str:
    from orbax_bench_core.provenance import package_version

    ours, *others = (
        f"{name} {installed(package_version(name))}"
        for name in ("orbax-bench", "orbax-checkpoint", "jax", "tensorstore")
    )
    return f"{ours} ({', '.join(others)})"


def main() -> None:
    """Runs the command line of this process."""
    # A report keeps millions of objects, and searching all of them for cycles took 18 % of it.
    gc.set_threshold(100_000, 50, 50)
    run_command_line(app)


def run_command_line(command: Callable[[], object]) -> None:
    """Runs a command; a user's mistake is one message and exit code 2."""
    # So is what the system refuses, such as a file or a connection: it has a number for it, which
    # an error of ours has not. A disk that is full or read-only, and memory that is used up, are
    # one message as well, and exit code 1. Whatever tells a process to end interrupts it, with exit
    # code 130.
    with printable_streams():
        _run(command)


def _run(command: Callable[[], object]) -> None:
    modes = contextlib.nullcontext() if sys.argv[1:2] == ["record"] else closed_to_others()
    try:
        with modes, interrupted_when_told(_clear):
            if sys.argv[1:2] and sys.argv[1] in _HERE:
                check_buckets(sys.argv[2:])
            if sys.argv[1:2] and sys.argv[1] in _OF_RUNS:
                refuse_recordings(sys.argv[2:])
            command()
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:
        from orbax_bench_core.errors import refusal_of  # help needs no suite

        refused = refusal_of(error)
        if refused is None:
            raise
        for line in _with_every_mistake(refused.error).said:
            print(f"error: {line}", file=sys.stderr)
        sys.exit(Exit.FAILED if refused.passing else Exit.INVALID)


def _with_every_mistake(error: UserError) -> UserError:
    """Returns the error of a suite with those of its benchmarks, whose classes know their own."""
    if "orbax_bench_core.config" not in sys.modules:
        return error  # no suite was read
    from orbax_bench_core.config import SuiteError
    from orbax_bench_core.sweep import with_mistaken_builtins

    return with_mistaken_builtins(error) if isinstance(error, SuiteError) else error


def _clear() -> None:
    from orbax_bench_core.files import clear_own

    clear_own()


def _is_recording(folder: str) -> bool:
    if folder.startswith("gs://"):
        from etils import epath

        path: Any = epath.Path(folder)
    elif os.path.isdir(folder):  # noqa: PTH112 - also of a word that can be no path
        path = Path(folder)
    else:
        return False
    # One level after the other: a bucket would list all of a run for one pattern of both.
    with contextlib.suppress(OSError):  # the command itself says what is wrong with the place
        hosts = [each for each in path.iterdir() if each.name.startswith("host_")]
        return any(True for host in hosts for _ in host.glob("*.jsonl"))
    return False


def refuse_recordings(words: Iterable[str]) -> None:
    """Points from a recording of a training job, also of one that runs, to what reads it."""
    for word in words:
        folder = word.partition("=")[2] or word
        if _is_recording(folder):
            from orbax_bench_core.errors import UserError, command

            raise UserError(
                f"{folder} is a recording of a training job, not a run: "
                f"`{command('diagnose', folder)}` says what is wrong with the job, and "
                f"`{command('diagnose', folder, '--as-run', 'RUN')}` writes a run of its saves, "
                "which other commands read"
            )
