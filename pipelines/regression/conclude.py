"""What a regression pipeline shows at its end, and its exit code."""

from __future__ import annotations

import pydantic
from rich.console import Console

from orbax_bench_core.analysis.verdicts import VerdictReport, verdict_table
from orbax_bench_core.cli.measurement import EXIT_FAILED, comparison_exit_code
from orbax_bench_core.records import VERDICTS_FILE, RunDirectory
from orbax_bench_pipelines.registry import Finished


def conclude(finished: Finished, console: Console) -> int:
    """Shows the verdicts of a run, and returns the exit code.

    Args:
        finished: The run; its pipeline fails when there is a regression.
        console: Where to show it.
    """
    verdicts = read_verdicts(RunDirectory(finished.directory))
    if verdicts is None:
        return EXIT_FAILED
    verdict_table(verdicts, console)
    return comparison_exit_code(
        verdicts, allow_inconclusive=finished.arguments["allow_inconclusive"]
    )


def read_verdicts(run: RunDirectory) -> VerdictReport | None:
    """Returns what a run's `verdicts.json` says; None without one that can be read."""
    try:
        return VerdictReport.model_validate_json((run.root / VERDICTS_FILE).read_bytes())
    except (OSError, pydantic.ValidationError):
        return None
