"""Table of the sub-commands: each is imported and built when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
import typer.main

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PLUGINS: Final = "orbax_bench.commands"

COMMANDS: Final[dict[str, str]] = {
    "init": "init.init",
    "run": "run.run",
    "ab": "ab.ab",
    "best": "best.best",
    "launch": "launch.launch",
    "compare": "compare.compare",
    "bisect": "bisect.bisect",
    "upgrade": "upgrade.upgrade",
    "baseline": "baseline.app",
    "history": "history.history",
    "site": "site.site",
    "async-study": "async_study.async_study",
    "soak": "soak.soak",
    "recovery": "recovery.recovery",
    "calibrate": "calibrate.calibrate",
    "expand": "expand.expand",
    "list": "expand.list_builtins",
    "migrate": "migrate.migrate",
    "doctor": "doctor.doctor",
    "report": "report.report",
    "lineage": "lineage.lineage",
    "limits": "limits.limits",
    "goodput": "goodput.goodput",
    "plan": "plan.plan",
    "inspect": "inspect.inspect",
    "sharding": "inspect.sharding",
    "step": "step.app",
}
"""Module and name of each command."""


class CommandTable(Mapping[str, Any]):
    """The commands of this package, then those that other packages add by an entry point.

    Building all of them takes longer than reading the command line otherwise does.
    """

    def __getitem__(self, name: str) -> Any:
        """Returns a command as the command line takes it.

        Raises:
            KeyError: There is none of that name.
        """
        return _built(name) if name in COMMANDS else _added(name)

    def __iter__(self) -> Iterator[str]:
        """Yields the names, ours first."""
        yield from COMMANDS
        yield from sorted(_plugins())

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(COMMANDS) + len(_plugins())


@functools.cache
def _built(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(".")
    command = getattr(import_module(f"orbax_bench_core.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode=None)
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name)
    else:
        alone.command(name)(command)
    return typer.main.get_group(alone).commands[name]


@functools.cache
def _added(name: str) -> Any:
    command = typer.main.get_command(_plugins()[name].load())
    command.name = name
    return command


@functools.cache
def _plugins() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    found = entry_points(group=_PLUGINS)
    return {point.name: point for point in found if point.name not in COMMANDS}
