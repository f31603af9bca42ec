"""`orbax-bench pipeline`: suites as Kubeflow pipelines."""

from __future__ import annotations

import typer

from orbax_bench_pipelines.cli import compile as compile_command
from orbax_bench_pipelines.cli import run as run_command
from orbax_bench_pipelines.cli import schedule as schedule_command
from orbax_bench_pipelines.cli import submit as submit_command

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run suites as pipelines, here or on a cluster.\n\n"
    "In processes or containers on this machine, on Kubeflow or on Vertex AI.",
)
app.command("run")(run_command.run)
app.command("submit")(submit_command.submit)
app.command("schedule")(schedule_command.schedule)
app.command("pause")(schedule_command.pause)
app.command("resume")(schedule_command.resume)
app.command("compile")(compile_command.compile_package)
app.command("list")(compile_command.list_pipelines)
