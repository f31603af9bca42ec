"""Table of the sub-commands: each is imported and built when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
import typer.main

from orbax_bench_core.cli.hosts import Reach, for_this_host

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PLUGINS: Final = "orbax_bench.commands"

_COMMANDS: Final[dict[str, tuple[str, Reach]]] = {
    "init": ("init.init", Reach.NONE),
    "run": ("run.run", Reach.ALL_HOSTS),
    "ab": ("ab.ab", Reach.ALL_HOSTS),
    "best": ("best.best", Reach.NONE),
    "launch": ("launch.launch", Reach.NONE),
    "compare": ("compare.compare", Reach.NONE),
    "bisect": ("bisect.bisect", Reach.ALL_HOSTS),
    "upgrade": ("upgrade.upgrade", Reach.ALL_HOSTS),
    "baseline": ("baseline.app", Reach.NONE),
    "history": ("history.history", Reach.NONE),
    "site": ("site.site", Reach.NONE),
    "async-study": ("async_study.async_study", Reach.ALL_HOSTS),
    "soak": ("soak.soak", Reach.ALL_HOSTS),
    "recovery": ("recovery.recovery", Reach.ALL_HOSTS),
    "calibrate": ("calibrate.calibrate", Reach.ALL_HOSTS),
    "expand": ("expand.expand", Reach.NONE),
    "list": ("expand.list_builtins", Reach.NONE),
    "migrate": ("migrate.migrate", Reach.NONE),
    "doctor": ("doctor.doctor", Reach.THIS_HOST),
    "report": ("report.report", Reach.NONE),
    "lineage": ("lineage.lineage", Reach.NONE),
    "limits": ("limits.limits", Reach.THIS_HOST),
    "goodput": ("goodput.goodput", Reach.NONE),
    "plan": ("plan.plan", Reach.NONE),
    "inspect": ("inspect.inspect", Reach.NONE),
    "sharding": ("sharding.sharding", Reach.NONE),
    "step": ("step.app", Reach.BY_STEP),
}
"""Module and name of each command, and its reach."""

REACH: Final = {name: reach for name, (_, reach) in _COMMANDS.items()}
"""The reach of every command of this package; groups of commands have one."""


class CommandTable(Mapping[str, Any]):
    """The commands of this package, then those that other packages add by an entry point.

    Building all of them takes longer than reading the command line otherwise does.
    """

    def __getitem__(self, name: str) -> Any:
        """Returns a command as the command line takes it.

        Raises:
            KeyError: There is none of that name.
        """
        return _built(name) if name in _COMMANDS else _added(name)

    def __iter__(self) -> Iterator[str]:
        """Yields the names, ours first."""
        yield from _COMMANDS
        yield from sorted(_plugins())

    def __len__(self) -> int:
        """Returns how many there are."""
        return len(_COMMANDS) + len(_plugins())


@functools.cache
def _built(name: str) -> Any:
    place, reach = _COMMANDS[name]
    module, _, attribute = place.partition(".")
    command = getattr(import_module(f"orbax_bench_core.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode=None)
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name)
    else:
        alone.command(name)(for_this_host(command) if reach is Reach.THIS_HOST else command)
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
    return {point.name: point for point in found if point.name not in _COMMANDS}
