"""`orbax-bench run`: run a suite on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile

if TYPE_CHECKING:
    from rich.console import Console

    from orbax_bench_core.execute.orchestrator import RunSettings
    from orbax_bench_core.results.record import Record
    from orbax_bench_core.results.run_directory import RunDirectory
    from orbax_bench_core.results.summary import RunSummary

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    local_directory: Annotated[
        str | None,
        typer.Option(
            "--local-directory",
            "--local_directory",
            help="Scratch directory on the local disk, for benchmarks that use one.",
        ),
    ] = None,
    enable_hlo_dump: Annotated[
        bool,
        typer.Option(
            "--enable-hlo-dump", "--enable_hlo_dump", help="Write XLA HLO protos to hlo_dump/."
        ),
    ] = False,
    remove_repeated_dir: Annotated[
        bool,
        typer.Option(
            "--remove-repeated-dir",
            "--remove_repeated_dir",
            help="Delete checkpoint data after each repeat.",
        ),
    ] = False,
    baseline_path: Annotated[
        str | None,
        typer.Option(
            "--baseline-path",
            "--baseline_path",
            help="Compare with this stored baseline or run directory.",
        ),
    ] = None,
    baseline_capture_path: Annotated[
        str | None,
        typer.Option(
            "--baseline-capture-path",
            "--baseline_capture_path",
            help="Store this run as a baseline here, one file per point.",
        ),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Simulate this many CPU devices; meshes that need another number are skipped. "
            "By default each mesh gets what it needs.",
        ),
    ] = None,
    no_lock: Annotated[
        bool,
        typer.Option("--no-lock", help="Measure even while another run measures on this machine."),
    ] = False,
) -> None:
    """Run a suite and show what it found.

    Killing it at any moment loses nothing that has finished: the same command goes on from there.

    Exit codes: 0 every repeat passed, 1 some failed, 2 the suite is invalid, 130 interrupted.
    """
    from rich.console import Console

    from orbax_bench_core.execute.orchestrator import RunSettings

    console = Console(soft_wrap=not sys.stdout.isatty())
    settings = RunSettings(
        local_directory=local_directory,
        remove_repeated_dir=remove_repeated_dir,
        hlo_dump=enable_hlo_dump,
        devices=devices,
    )
    baselines = Baselines(compare=baseline_path, capture=baseline_capture_path)
    raise typer.Exit(
        run_suite(suite, output_directory, settings, baselines, console, lock=not no_lock)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baselines:
    """What to do with baselines; None leaves it to the suite.

    Attributes:
        compare: Baseline to compare with.
        capture: Where to store the run as one.
    """

    compare: str | None
    capture: str | None


def run_suite(
    suite: str,
    output_directory: str,
    settings: RunSettings,
    baselines: Baselines,
    console: Console,
    *,
    lock: bool,
) -> int:
    """Runs a suite from file to report, and returns the exit code.

    Args:
        suite: The suite file.
        output_directory: The run directory.
        settings: How to run it.
        baselines: What to compare with, and where to store.
        console: Where to show progress and results.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Raises:
        SuiteError: The suite is invalid, or the run directory cannot be used.
    """
    from orbax_bench_core.compare.baseline import load
    from orbax_bench_core.config.load import load_suite
    from orbax_bench_core.execute.group import CannotRecord
    from orbax_bench_core.execute.host_lock import measuring_lock
    from orbax_bench_core.execute.orchestrator import run_points
    from orbax_bench_core.report.console import print_notes, print_summary
    from orbax_bench_core.report.progress import ProgressReport
    from orbax_bench_core.report.publish import publish
    from orbax_bench_core.results.run_directory import RunDirectory
    from orbax_bench_core.sweep.isolate import expand

    loaded = load_suite(suite)
    compare_with = baselines.compare or loaded.suite.baseline_path
    before = None if compare_with is None else load(compare_with)
    expansion = expand(loaded)
    directory = RunDirectory(output_directory)
    info = directory.start(loaded, expansion)
    print_notes(info, console)
    total = len(expansion.points) * info.num_repeats
    console.print(
        f"{info.suite_name}: {len(expansion.points)} points x {info.num_repeats} repeats",
        markup=False,
    )
    guard = measuring_lock(console.print) if lock else contextlib.nullcontext()
    stopped = ""
    # Whoever ends this process in an orderly way, its workers end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress = ProgressReport(console, total=total)
    try:
        with guard, progress:
            run_points(directory, info, loaded, expansion.points, settings, progress)
    except KeyboardInterrupt:
        stopped = "interrupted"
    except CannotRecord as failure:
        stopped = f"stopped: {failure}"
    if stopped:
        console.print(
            f"{stopped}; {progress.ended} of {total} repeats are done and kept.\n"
            "Run the same command again to finish the rest.",
            markup=False,
        )
        return EXIT_INTERRUPTED if stopped == "interrupted" else EXIT_FAILED
    try:
        summary = publish(directory)
    except OSError as failure:
        console.print(
            f"cannot write the results: {failure}\nEvery record is kept: make room, then "
            f"`orbax-bench report {directory.root}`",
            markup=False,
        )
        return EXIT_FAILED
    print_summary(summary, console)
    if before is not None:
        _compare(before, directory, console)
    capture_path = baselines.capture or loaded.suite.baseline_capture_path
    if capture_path is not None:
        _capture(directory, capture_path, console)
    console.print(f"Run directory: {directory.root}", markup=False, soft_wrap=True)
    return exit_code(summary, console)


def _compare(before: list[Record], directory: RunDirectory, console: Console) -> None:
    from rich.markdown import Markdown

    from orbax_bench_core.compare.ratios import compare
    from orbax_bench_core.report.comparison import comparison_markdown

    console.print(Markdown(comparison_markdown(compare(before, directory.records()))))


def _capture(directory: RunDirectory, path: str, console: Console) -> None:
    from orbax_bench_core.compare.baseline import capture

    folder, left_out = capture(directory, path)
    console.print(f"Baseline: {folder}", markup=False, soft_wrap=True)
    for name in left_out:
        console.print(f"not captured, because a repeat did not pass: {name}", markup=False)


def exit_code(summary: RunSummary, console: Console) -> int:
    """Returns the exit code of a run that came to its end.

    Args:
        summary: What it found.
        console: Where to say that nothing was measured.
    """
    if not any(point.passed for point in summary.points):
        console.print("[red]Nothing was measured.[/]")
        return EXIT_FAILED
    return EXIT_FAILED if any(point.failed for point in summary.points) else 0
