"""What a framework comparison shows at its end, and its exit code."""

from __future__ import annotations

from rich.console import Console

from orbax_bench_core.analysis.verdicts import verdict_table
from orbax_bench_core.cli.measurement import EXIT_FAILED
from orbax_bench_core.records import RunDirectory
from orbax_bench_pipelines.registry import Finished
from orbax_bench_pipelines.regression.conclude import read_verdicts


def conclude(finished: Finished, console: Console) -> int:
    """Shows how many times as long the candidate takes; only what could not be measured fails.

    Args:
        finished: The run.
        console: Where to show it.
    """
    verdicts = read_verdicts(RunDirectory(finished.directory))
    if verdicts is None:
        return EXIT_FAILED
    verdict_table(verdicts, console)
    return EXIT_FAILED if any(point.failed for point in verdicts.points) else 0
