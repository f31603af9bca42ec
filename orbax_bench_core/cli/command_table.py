"""Table of the sub-commands: each is imported and built when it is asked for."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from orbax_bench_core.cli.arguments import MORE

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PLUGINS: Final = "orbax_bench.commands"

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Commands that people begin with": {
        "init": "init.init",
        "run": "run.run",
        "best": "past_runs.best",
        "ab": "comparisons.ab",
    },
    "Releases and regressions": {
        "upgrade": "comparisons.upgrade",
        "bisect": "comparisons.bisect",
        "compare": "past_runs.compare",
        "history": "past_runs.history",
        "baseline": "baseline.app",
    },
    "A training job of yours": {"record": "recordings.record", "diagnose": "recordings.diagnose"},
    "Studies": {
        "async-study": "studies.async_study",
        "recovery": "studies.recovery",
        "soak": "studies.soak",
        "calibrate": "studies.calibrate",
    },
    "Checkpoints, and answers without a run": {
        "plan": "plan.plan",
        "goodput": "plan.goodput",
        "inspect": "plan.inspect",
        "sharding": "plan.sharding",
    },
    "Suites and benchmarks": {
        "expand": "suites.expand",
        "list": "suites.list_builtins",
        "migrate": "suites.migrate",
    },
    "This machine": {"doctor": "machine.doctor", "limits": "machine.limits"},
    "Past runs": {
        "report": "past_runs.report",
        "site": "past_runs.site",
        "night": "watch.night",
        "accept": "accept.accept",
        "watch": "watch.watch",
        "lineage": "past_runs.lineage",
    },
    "Clusters, pipelines and others": {
        "launch": "run.launch",
        "prune": "watch.prune",
        "step": "command_table.steps",
    },
}
"""Module and name of each command, by the headings of the help; plugins follow the last."""

COMMANDS: Final = {name: place for group in GROUPS.values() for name, place in group.items()}
"""Module and name of each command."""


class _Steps(TyperGroup):
    """Group whose commands are made when they are asked for: they import all that a step does."""

    @property
    def commands(self) -> Any:
        from orbax_bench_core.cli import step_commands

        return typer.main.get_group(step_commands.app).commands

    @commands.setter
    def commands(self, none: Any) -> None:
        """Takes what `steps` has by itself, which is nothing."""


steps = typer.Typer(
    cls=_Steps,
    no_args_is_help=True,
    help="The steps of a pipeline, one by one.\n\nThey do what the Kubeflow components do, for "
    "Airflow, Argo, cron and CI. The last line of standard output is what the step returns, as "
    "JSON. The same step again repeats no work.",
)


class _OptionalNumbers(TyperCommand):
    """A command whose flag `--more` may do without its number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if any(MORE in one.opts for one in self.params):
            args = [
                f"{MORE}=0" if word == MORE and not after.isdecimal() else word
                for word, after in itertools.pairwise([*args, ""])
            ]
        return super().parse_args(ctx, args)


class CommandTable(Mapping[str, Any]):
    """The commands of this package, then those that other packages add by an entry point.

    Building all of them takes longer than reading the command line otherwise does.
    """

    def __getitem__(self, name: str) -> Any:
        return _built(name) if name in COMMANDS else _added(name)

    def __iter__(self) -> Iterator[str]:
        yield from COMMANDS
        yield from sorted(_plugins())

    def __len__(self) -> int:
        return len(COMMANDS) + len(_plugins())


@functools.cache
def _built(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(".")
    command = getattr(import_module(f"orbax_bench_core.cli.{module}"), attribute)
    alone = typer.Typer(rich_markup_mode=None)
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name)
    else:
        # The words of a program that is started are its own, with or without -- before it.
        settings = {"allow_interspersed_args": name != "record"}
        alone.command(name, cls=_OptionalNumbers, context_settings=settings)(command)
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
