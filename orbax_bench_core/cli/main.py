"""Entry point of the `orbax-bench` command: its sub-commands, and those of other packages."""

from __future__ import annotations

import atexit
import functools
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
import typer.core

from orbax_bench_core.cli import (
    ab,
    async_study,
    baseline,
    best,
    bisect,
    calibrate,
    compare,
    doctor,
    expand,
    history,
    init,
    inspect,
    launch,
    limits,
    lineage,
    migrate,
    plan,
    prepare,
    recovery,
    report,
    run,
    sharding,
    site,
    soak,
    step,
    upgrade,
)
from orbax_bench_core.cli.buckets import check_buckets
from orbax_bench_core.cli.hosts import Reach, for_this_host
from orbax_bench_core.cli.terminal import printable_streams
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.interrupts import interrupted_when_told

if TYPE_CHECKING:
    import importlib.metadata

    from orbax_bench_core.errors import UserError

_PLUGINS = "orbax_bench.commands"


_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Commands that people begin with": ("init", "run", "best", "ab"),
    "Releases and regressions": ("upgrade", "bisect", "compare", "history", "baseline"),
    "Studies": ("async-study", "recovery", "soak", "calibrate"),
    "Checkpoints, and answers without a run": ("plan", "inspect", "prepare", "sharding"),
    "Suites and benchmarks": ("expand", "list", "migrate"),
    "This machine": ("doctor", "limits"),
    "Runs that are there": ("report", "site", "lineage"),
}
"""Headings of the help, and the commands below each; others stand below the last heading."""


class _Commands(typer.core.TyperGroup):
    """Our sub-commands, and those that other packages add by an entry point."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands by what they are for."""
        names = self.list_commands(ctx)
        grouped = {name for group in _GROUPS.values() for name in group}
        rest = [name for name in names if name not in grouped]
        width = formatter.width - 6 - max(map(len, names))
        for heading, group in {**_GROUPS, "Clusters, pipelines and others": rest}.items():
            rows = [
                (name, command.get_short_help_str(width))
                for name in group
                if (command := self.get_command(ctx, name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=30, col_spacing=2)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_plugins())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in _plugins():
            command = typer.main.get_command(_plugins()[cmd_name].load())
            command.name = cmd_name
        return command


_FIRST: Final = """\
Measure checkpointing, and tell a regression from noise. What people do first:

  orbax-bench init                   write a suite to begin with
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
    """Returns the version of this package, and of the libraries whose speed is measured."""
    from orbax_bench_core.provenance import package_version

    ours, *others = (
        f"{name} {package_version(name)}"
        for name in ("orbax-bench", "orbax-checkpoint", "jax", "tensorstore")
    )
    return f"{ours} ({', '.join(others)})"


REACH: dict[str, Reach] = {}
"""The reach of every command of this package; groups of commands have one."""


def _add(name: str, command: Callable[..., None] | typer.Typer, reach: Reach) -> None:
    REACH[name] = reach
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        known = for_this_host(command) if reach is Reach.THIS_HOST else command
        app.command(name)(known)


_add("init", init.init, Reach.NONE)
_add("run", run.run, Reach.ALL_HOSTS)
_add("ab", ab.ab, Reach.ALL_HOSTS)
_add("best", best.best, Reach.NONE)
_add("launch", launch.launch, Reach.NONE)
_add("compare", compare.compare, Reach.NONE)
_add("bisect", bisect.bisect, Reach.ALL_HOSTS)
_add("upgrade", upgrade.upgrade, Reach.ALL_HOSTS)
_add("baseline", baseline.app, Reach.NONE)
_add("history", history.history, Reach.NONE)
_add("site", site.site, Reach.NONE)
_add("async-study", async_study.async_study, Reach.ALL_HOSTS)
_add("soak", soak.soak, Reach.ALL_HOSTS)
_add("recovery", recovery.recovery, Reach.ALL_HOSTS)
_add("calibrate", calibrate.calibrate, Reach.ALL_HOSTS)
_add("expand", expand.expand, Reach.NONE)
_add("list", expand.list_builtins, Reach.NONE)
_add("migrate", migrate.migrate, Reach.NONE)
_add("doctor", doctor.doctor, Reach.THIS_HOST)
_add("report", report.report, Reach.NONE)
_add("lineage", lineage.lineage, Reach.NONE)
_add("limits", limits.limits, Reach.THIS_HOST)
_add("plan", plan.plan, Reach.NONE)
_add("inspect", inspect.inspect, Reach.NONE)
_add("prepare", prepare.prepare, Reach.THIS_HOST)
_add("sharding", sharding.sharding, Reach.NONE)
_add("step", step.app, Reach.BY_STEP)


_HERE: Final = frozenset(REACH) - {"launch"}
"""Commands that read and write here what they are told of; others hand it on to a cluster."""


_SELDOM: Final = (100_000, 50, 50)
"""Objects more than before at which cycles among the young are searched for, and how often among
the others: a large run is a million objects that are all kept, and going through them again and
again took an eighth of the time of its report."""


def main() -> None:
    """Runs the command line of this process.

    At its end the interpreter would search all that is kept for garbage again, several times.
    """
    gc.set_threshold(*_SELDOM)
    atexit.register(gc.freeze)
    run_command_line(app)


def run_command_line(command: Callable[[], object]) -> None:
    """Runs a command; a user's mistake is one message and exit code 2.

    So is what the system refuses, such as a file or a connection: it has a number for it, which an
    error of ours has not. A disk that is full or read-only, and memory that is used up, are one
    message as well, and exit code 1. Whatever tells a process to end interrupts it, with exit code
    130.
    """
    with printable_streams():
        _run(command)


def _run(command: Callable[[], object]) -> None:
    try:
        with interrupted_when_told(_clear):
            if sys.argv[1:2] and sys.argv[1] in _HERE:
                check_buckets(sys.argv[2:])
            command()
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except Exception as error:
        from orbax_bench_core.errors import refusal_of  # help needs no suite

        refused = refusal_of(error)
        if refused is None:
            raise
        _end(Exit.FAILED if refused.passing else Exit.INVALID, refused.error)


def _clear() -> None:
    from orbax_bench_core.files import clear_own

    clear_own()


def _end(code: Exit, error: UserError) -> NoReturn:
    for line in error.said:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(code)


@functools.cache
def _plugins() -> dict[str, importlib.metadata.EntryPoint]:
    import importlib.metadata

    return {point.name: point for point in importlib.metadata.entry_points(group=_PLUGINS)}
