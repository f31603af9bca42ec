"""`orbax-bench pipeline`: suites as Kubeflow pipelines."""

import typer

from orbax_bench_pipelines.cli import compile as compile_command
from orbax_bench_pipelines.cli import run as run_command
from orbax_bench_pipelines.cli import services

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run suites as pipelines, here or on a cluster.\n\n"
    "In processes or containers on this machine, on Kubeflow or on Vertex AI.",
)
app.command("run")(run_command.run)
app.command("submit")(services.submit)
app.command("schedule")(services.schedule)
app.command("pause")(services.pause)
app.command("resume")(services.resume)
app.command("compile")(compile_command.compile_package)
app.command("list")(compile_command.list_pipelines)
