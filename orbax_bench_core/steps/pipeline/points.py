"""Steps before the first point is measured: the plan of a sweep, and the checkpoint it loads."""

from __future__ import annotations

from orbax_bench_core.lineage import artifact_metadata, checkpoint_metadata, config_digest
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.fixture import ensure_checkpoint
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs, StepOutput
from orbax_bench_core.steps.planning import plan


@tried_again
def plan_sweep(
    suite: str,
    output_directory: str,
    *,
    arms: str = "",
    processes: int = 0,
    file: str = "",
    points_per_step: int = 0,
) -> Outputs[list[str]]:
    """Expand a suite into points and begin its run directory; returns what each step measures.

    Args:
        suite: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.
        arms: An `arms` block, as YAML, for a suite that has none.
        processes: Host processes of each point, where the suite names none; 0 leaves it at one.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        points_per_step: Points that one step measures; 0 for so many that it takes minutes.

    Returns:
        The value has an item for each step: the ids of its points or pairs, separated by spaces;
        `planned` is the suite, as `run.json` holds it.

    Raises:
        UserError: The suite is invalid, or the directory cannot be used.
    """
    steps = plan(suite, output_directory, arms, processes, file, points_per_step)
    run = RunDirectory(output_directory)
    place = str(run.root / "run.json")
    metadata = artifact_metadata("suite", run, digest=config_digest(run), path=place)
    return Outputs(value=steps, named={"planned": StepOutput(metadata=metadata, place=place)})


@tried_again
def generate_checkpoint(suite: str, *, fixture: str = "") -> Outputs[str | None]:
    """Make the checkpoint that a suite loads, unless it is there; returns its path, or null.

    Args:
        suite: The suite file, word for word.
        fixture (SUITE): A suite whose first checkpoint is made if missing.

    Returns:
        `checkpoint` lies where the suite looks for it; of a suite that loads none it has no place.

    Raises:
        UserError: It is missing and cannot be made.
    """
    path = ensure_checkpoint(suite, fixture)
    metadata = checkpoint_metadata(path, suite)
    return Outputs(value=path, named={"checkpoint": StepOutput(metadata=metadata, place=path)})
