"""`orbax-bench pipeline`: suites as Kubeflow pipelines."""

from __future__ import annotations

from typing import Annotated

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile

app = typer.Typer(no_args_is_help=True, help="Run suites as Kubeflow pipelines.")


@app.callback()
def _pipeline() -> None:
    """Run suites as Kubeflow pipelines."""


@app.command("run")
def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    fixture: Annotated[
        str | None,
        typer.Option(
            help="A suite file; its first checkpoint is generated when SUITE loads one that is "
            "missing."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="A baseline or run to compare with: ratios by point, no verdict yet."),
    ] = None,
    enable_hlo_dump: Annotated[
        bool, typer.Option("--enable-hlo-dump", help="Write XLA HLO protos to hlo_dump/.")
    ] = False,
    remove_repeated_dir: Annotated[
        bool,
        typer.Option("--remove-repeated-dir", help="Delete checkpoint data after each repeat."),
    ] = False,
    no_limits: Annotated[
        bool,
        typer.Option("--no-limits", help="Do not measure what the machine and storage can do."),
    ] = False,
) -> None:
    """Run the sweep pipeline on this machine, each step in a process of its own.

    Needs no cluster and no Docker, and leaves the same run directory as `orbax-bench run`.
    """
    import importlib.util
    import os
    import sys
    import tempfile
    from functools import partial
    from pathlib import Path

    from orbax_bench_core.config.errors import SuiteError

    if importlib.util.find_spec("kfp") is None:
        raise SuiteError("pipelines need kfp: pip install 'orbax-bench[kfp]'")

    from rich.console import Console
    from rich.markdown import Markdown

    from orbax_bench_core.cli.suite_run import exit_code
    from orbax_bench_core.compare.baseline import load
    from orbax_bench_core.compare.ratios import compare
    from orbax_bench_core.config.load import load_suite
    from orbax_bench_core.config.paths import checked_path
    from orbax_bench_core.report.comparison import comparison_markdown
    from orbax_bench_core.report.console import print_notes, print_summary
    from orbax_bench_core.report.publish import limits_of
    from orbax_bench_core.results.run_directory import RunDirectory
    from orbax_bench_core.results.summary import summarize
    from orbax_bench_core.sweep.isolate import benchmark_environment, expand
    from orbax_bench_pipelines.local import PipelineFailed, run_locally
    from orbax_bench_pipelines.sweep import sweep

    # Bound to this stream: while the pipeline runs, `sys.stdout` is its log.
    console = Console(file=sys.stdout)
    directory = RunDirectory(output_directory)
    before = None if baseline is None else load(baseline)
    loaded = load_suite(suite)
    expand(loaded)  # a mistake in the suite is told before any step starts
    os.environ["PYTHONPATH"] = benchmark_environment(suite)["PYTHONPATH"]
    arguments = {
        "suite": loaded.text,
        "output_directory": str(directory.root),
        "fixture": "" if fixture is None else load_suite(fixture).text,
        "baseline": "" if baseline is None else checked_path(baseline),
        "remove_repeated_dir": remove_repeated_dir,
        "enable_hlo_dump": enable_hlo_dump,
        "measure_limits": not no_limits,
    }
    with tempfile.NamedTemporaryFile(
        "w", prefix="orbax-bench-", suffix=".log", delete=False
    ) as log:
        try:
            run_locally(sweep, arguments, log=log, say=partial(console.print, markup=False))
        except PipelineFailed as failure:
            console.print(
                f"[red]The pipeline failed:[/] {failure}\nWhat its steps printed: {log.name}"
            )
            raise typer.Exit(1) from None
    Path(log.name).unlink()
    summary, info = summarize(directory.records()), directory.read_info()
    print_notes(info, console)
    print_summary(summary, console, limits_of(directory, info, summary))
    if before is not None:
        console.print(Markdown(comparison_markdown(compare(before, directory.records()))))
    console.print(f"Run directory: {directory.root}", markup=False, soft_wrap=True)
    raise typer.Exit(exit_code(summary, console))
