"""What a calibration shows at its end, and its exit code."""

from __future__ import annotations

from rich.console import Console

from orbax_bench_core.analysis.noise import calibration_of
from orbax_bench_core.cli.measurement import EXIT_FAILED
from orbax_bench_pipelines.registry import Finished


def conclude(finished: Finished, console: Console) -> int:
    """Shows how often identical arms were told apart and how noisy they are.

    A false alarm is what is counted here, so it fails nothing.

    Args:
        finished: The run.
        console: Where to show it.
    """
    if finished.failure is not None:
        return EXIT_FAILED
    earlier = finished.arguments["earlier"]
    calibration_of([finished.directory, *([earlier] if earlier else [])]).show(console)
    return 0
