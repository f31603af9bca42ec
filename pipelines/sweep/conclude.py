"""What a sweep shows at its end, and its exit code."""

from __future__ import annotations

from rich.console import Console

from orbax_bench_core.analysis.summary import print_notes, print_summary, summarize
from orbax_bench_core.analysis.verdicts import VerdictReport, verdict_table
from orbax_bench_core.cli.measurement import EXIT_FAILED, run_exit_code
from orbax_bench_core.records import VERDICTS_FILE, RunDirectory
from orbax_bench_core.steps import limits_of
from orbax_bench_pipelines.registry import Finished


def conclude(finished: Finished, console: Console) -> int:
    """Shows the summary of a sweep, and its comparison with a baseline, and returns the exit code.

    A comparison with what was measured apart can only warn, so that it is no part of the code.

    Args:
        finished: The run.
        console: Where to show it.
    """
    if finished.failure is not None:
        return EXIT_FAILED
    directory = RunDirectory(finished.directory)
    summary, info = summarize(directory.records()), directory.read_info()
    print_notes(info, console)
    print_summary(summary, console, limits_of(directory, info, summary))
    if finished.arguments["baseline"]:
        verdicts = (directory.root / VERDICTS_FILE).read_bytes()
        verdict_table(VerdictReport.model_validate_json(verdicts), console)
    return run_exit_code(summary, console)
