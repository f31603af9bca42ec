"""Step plan-sweep: the points of a suite, and their run directory."""

from __future__ import annotations

from orbax_bench_core.steps.pipeline.outputs import Outputs
from orbax_bench_core.steps.planning import plan


def plan_sweep(
    suite: str, output_directory: str, *, arms: str = "", processes: int = 0
) -> Outputs[list[str]]:
    """Expands a suite into sweep points and begins its run directory.

    Args:
        suite: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.
        arms: An `arms` block, as YAML, for a suite that has none; empty leaves the suite as it is.
        processes: Host processes of each point of a suite that names none; 0 leaves it at one.

    Returns:
        The value is the list of points or pairs, each as a line of JSON.

    Raises:
        UserError: The suite is invalid, or the directory cannot be used.
    """
    return Outputs(value=plan(suite, output_directory, arms, processes))
