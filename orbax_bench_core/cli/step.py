"""`step`: the steps of a pipeline as commands, for engines other than Kubeflow."""

from __future__ import annotations

import functools
from typing import Any

import typer
from typer.core import TyperGroup


class _Steps(TyperGroup):
    """Group whose commands are made when they are asked for: they import all that a step does."""

    @property
    def commands(self) -> Any:
        """All steps by name."""
        return _commands()

    @commands.setter
    def commands(self, none: Any) -> None:
        """Takes what `app` has by itself, which is nothing."""


app = typer.Typer(
    cls=_Steps,
    no_args_is_help=True,
    help="The steps of a pipeline, one by one: what the Kubeflow components do, for Airflow, Argo, "
    "cron and CI.\n\nThe last line of standard output is what the step returns, as JSON. The same "
    "step again does nothing twice.",
)


@functools.cache
def _commands() -> Any:
    from orbax_bench_core.cli import step_commands

    return typer.main.get_group(step_commands.app).commands
